import { Fault } from "@warren/base/fault.ts"
import type { Journal } from "@warren/protocol/journal.ts"
import type { SessionEvent } from "@warren/protocol/user-plane/sessions.ts"
import type { z } from "zod"

/** A session that is deleted takes along what is only there for it. */
export function forgetDeleted(
  events: Journal<z.output<typeof SessionEvent>>,
  forget: (session: string) => Promise<void>,
): AsyncDisposable {
  const stop = new AbortController()
  const follow = async (): Promise<void> => {
    for (let after = events.last; !stop.signal.aborted;) {
      try {
        for await (const { seq, item } of events.read(after, stop.signal)) {
          after = seq
          if (item.event === "deleted") await forget(item.id)
        }
      } catch (failure) {
        // It fell behind: what it missed is forgotten when the runner starts the next time.
        if (Fault.from(failure).code === "resync") after = events.last
      }
    }
  }
  const following = follow()
  return {
    async [Symbol.asyncDispose]() {
      stop.abort(new Fault("cancelled", "the runner goes"))
      await following
    },
  }
}
