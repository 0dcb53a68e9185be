import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Principal } from "./visit.ts"

/** A revoked token's feeds and streams end within this. */
const lookMs = 2_000

interface Watched {
  readonly kind: "feed" | "stream"
  /** Those of one key are looked at once. */
  readonly key: string
  isStill(): Promise<boolean>
  readonly controller: AbortController
}

/** Feeds and streams that go on: cut when what they were opened with counts no more. */
export class Watch implements Disposable {
  readonly #isStill: (principal: Principal) => Promise<boolean>
  readonly #log: Log
  readonly #open = new Set<Watched>()
  readonly #timer: NodeJS.Timeout
  #isEnding = false

  constructor(isStill: (principal: Principal) => Promise<boolean>, log: Log) {
    this.#isStill = isStill
    this.#log = log
    this.#timer = setInterval(() => void this.look(), lookMs)
    this.#timer.unref()
  }

  /** Aborts when the principal may no more; whoever asked says when it is over. */
  open(kind: Watched["kind"], principal: Principal): { readonly signal: AbortSignal; close(): void } {
    return this.openAs(kind, `${principal.viaId} ${principal.user.id}`, () => this.#isStill(principal))
  }

  /** The same for what goes back to something else than one principal. */
  openAs(
    kind: Watched["kind"],
    key: string,
    isStill: () => Promise<boolean>,
  ): { readonly signal: AbortSignal; close(): void } {
    const watched: Watched = { kind, key, isStill, controller: new AbortController() }
    this.#open.add(watched)
    // Who was sent away may come back before the connection it came over is closed.
    if (this.#isEnding && kind === "feed") watched.controller.abort(stopping())
    return { signal: watched.controller.signal, close: () => this.#open.delete(watched) }
  }

  /** Looks at everything that is open, once for each token or sign-in. */
  async look(): Promise<void> {
    const byVia = new Map<string, Watched[]>()
    for (const watched of this.#open) {
      const { key } = watched
      byVia.set(key, [...(byVia.get(key) ?? []), watched])
    }
    for (const group of byVia.values()) {
      const [first] = group
      if (first && !(await this.#still(first))) for (const { controller } of group) controller.abort(over())
    }
  }

  /** Ends what would never end by itself, and goes on without its readers; they come back with `after`. */
  endFeeds(): void {
    this.#isEnding = true
    for (const { kind, controller } of this.#open) if (kind === "feed") controller.abort(stopping())
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  /** A database that does not answer is no reason to cut everybody off. */
  async #still(watched: Watched): Promise<boolean> {
    try {
      return await watched.isStill()
    } catch (thrown) {
      this.#log("warn", "watch.failed", { message: messageOf(thrown) })
      return true
    }
  }
}

function stopping(): Fault {
  return new Fault("unavailable", "Warren is stopping", { hint: "come back and ask for what came after" })
}

function over(): Fault {
  return new Fault("unauthenticated", "what this was opened with does not count any more")
}
