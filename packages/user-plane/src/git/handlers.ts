import type { Handlers } from "@warren/protocol/contract.ts"
import type { gitCalls } from "@warren/protocol/user-plane/git.ts"
import type { EnvironmentOf } from "../processes/handlers.ts"
import type { Sessions } from "../sessions/sessions.ts"
import type { Use } from "../sessions/use.ts"
import { changedFiles, diffOf } from "./diff.ts"
import type { Forge } from "./forge.ts"
import { requestPull } from "./pull-request.ts"
import { Repository } from "./repository.ts"
import { SandboxWorkbench } from "./sandbox-workbench.ts"

export interface GitParts {
  readonly sessions: Sessions
  readonly environmentOf: EnvironmentOf
  readonly forge: Forge
  /** Where a session's agent works, if it has one. */
  folderOf(session: string): string | undefined
}

interface Asked {
  readonly id: string
  readonly folder?: string | undefined
}

/** What a user plane answers about repositories in sessions. */
export function gitHandlers({ sessions, environmentOf, forge, folderOf }: GitParts): Handlers<typeof gitCalls> {
  const within = async <T>(
    { id, folder }: Asked,
    signal: AbortSignal,
    work: (repository: Repository, use: Use) => Promise<T>,
  ): Promise<T> => {
    using use = await sessions.use(id, signal)
    const bench = new SandboxWorkbench(use, environmentOf)
    return await work(new Repository(bench, folder ?? folderOf(use.record.id) ?? bench.root), use)
  }
  return {
    "session.gitState": (asked, { signal }) => within(asked, signal, (repository) => repository.state(signal)),
    "session.changedFiles": ({ against, ...asked }, { signal }) =>
      within(asked, signal, (repository) => changedFiles(repository, against, signal)),
    "session.diff": ({ against, path, ...asked }, { signal }) =>
      within(asked, signal, (repository) => diffOf(repository, { against, path }, signal)),
    "session.createPullRequest": ({ id, folder, ...wish }, { signal }) =>
      within({ id, folder }, signal, (repository, { record }) =>
        requestPull(repository, wish, record.keys, forge, signal),
      ),
  }
}
