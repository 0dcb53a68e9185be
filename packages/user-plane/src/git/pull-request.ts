import { Fault } from "@warren/base/fault.ts"
import type { KeyUse } from "../sessions/way-out.ts"
import type { Forge, PullRequest } from "./forge.ts"
import { addressOf, type RepositoryAddress } from "./repository-address.ts"
import type { Repository } from "./repository.ts"

export interface Wish {
  readonly title: string
  readonly body: string
  readonly base?: string | undefined
  readonly isDraft: boolean
}

const pushMs = 120_000

/** Pushes the branch with the session's own lease, then asks for it to be merged. */
export async function requestPull(
  repository: Repository,
  wish: Wish,
  keys: readonly KeyUse[],
  forge: Forge,
  signal: AbortSignal,
): Promise<PullRequest & { head: string; base: string }> {
  const { isRepository, branch: head, remote, folder } = await repository.state(signal)
  if (!isRepository) throw new Fault("not_found", `there is no repository in ${folder}`, { hint: "say where: folder" })
  if (remote === undefined) throw new Fault("conflict", "the repository has no remote called origin")
  if (head === undefined) throw new Fault("conflict", "no branch is checked out there", { hint: "make one" })
  const address = addressOf(remote)
  requireKey(address, keys)
  const base = wish.base ?? (await repository.mainBranch(signal))
  if (base === undefined)
    throw new Fault("invalid", "the remote does not say which branch is its main one", { hint: "say which: base" })
  if (head === base)
    throw new Fault("conflict", `${head} cannot be merged into itself`, { hint: "work on another branch" })
  await repository.git.run(["push", "--set-upstream", "origin", `HEAD:refs/heads/${head}`], signal, {
    timeoutMs: pushMs,
  })
  const { title, body, isDraft } = wish
  return { ...(await forge.request(address, { title, body, isDraft, head, base }, signal)), head, base }
}

/** Only what the session was lent is used for it, whoever asks. */
function requireKey({ host, path }: RepositoryAddress, keys: readonly KeyUse[]): void {
  const wanted = `${host ?? ""}/${path}`.toLowerCase()
  const isLent = keys.some(({ scope, destination = "" }) => {
    const to = destination.toLowerCase().replace(/\.git$/, "")
    return scope === "git:write" && (to === host || to === wanted)
  })
  if (isLent) return
  throw new Fault("forbidden", `the session may not write to ${wanted}`, {
    hint: `give it the key: {"scope": "git:write", "destination": "${wanted}"}`,
  })
}
