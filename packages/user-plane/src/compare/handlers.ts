import type { Handlers } from "@warren/protocol/contract.ts"
import type { compareCalls } from "@warren/protocol/user-plane/compare.ts"
import { SandboxWorkbench } from "../git/sandbox-workbench.ts"
import type { EnvironmentOf } from "../processes/handlers.ts"
import type { Sessions } from "../sessions/sessions.ts"
import { compare } from "./compare.ts"
import { usualGround } from "./listing.ts"

interface CompareParts {
  readonly sessions: Sessions
  readonly environmentOf: EnvironmentOf
  /** Where a session's agent works, if it has one. */
  folderOf(session: string): string | undefined
}

/** What a user plane answers about two sessions at once. */
export function compareHandlers({ sessions, environmentOf, folderOf }: CompareParts): Handlers<typeof compareCalls> {
  return {
    "session.compare": async ({ id, other, folder: asked }, { signal }) => {
      using here = await sessions.use(id, signal)
      using there = await sessions.use(other, signal)
      const folder = asked ?? folderOf(here.record.id)
      const ground = folder === undefined ? usualGround : { folder, within: ["."] }
      const benches = [new SandboxWorkbench(here, environmentOf), new SandboxWorkbench(there, environmentOf)] as const
      return { folder: ground.folder, ...(await compare(benches, ground, signal)) }
    },
  }
}
