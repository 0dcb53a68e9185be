import { posix } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { Provision } from "@warren/protocol/user-plane/provision.ts"
import { Git } from "../../git/git.ts"
import { addressOf, isSameAddress, type RepositoryAddress } from "../../git/repository-address.ts"
import type { Workbench } from "../../git/workbench.ts"

export interface Site {
  readonly git: Git
  readonly address: RepositoryAddress
  /** Somebody has worked there before. */
  readonly isKnown: boolean
}

const shortMs = 30_000
const fetchMs = 30 * 60_000

/** The folder for a repository: where it lies already, or where nothing lies yet. Nothing is changed. */
export async function findSite(
  wishes: Provision & { repo: string },
  bench: Workbench,
  signal: AbortSignal,
): Promise<Site> {
  const address = addressOf(wishes.repo)
  for (const folder of foldersFor(wishes.folder, address, bench)) {
    const git = new Git(bench, folder)
    const found = await look(git, address, bench, signal)
    if (found === "free") return { git, address, isKnown: false }
    if (found === "same") return { git, address, isKnown: true }
  }
  throw new Fault("conflict", "something else lies where the repository should be", {
    hint: "say another folder, or use another workspace",
  })
}

function foldersFor(
  wish: string | undefined,
  { name }: RepositoryAddress,
  { root, hasWorkspace }: Workbench,
): string[] {
  if (wish === undefined) return hasWorkspace ? [root, posix.join(root, name)] : [posix.join(root, name)]
  const folder = posix.resolve(root, wish)
  const isBelow = folder.startsWith(`${root}/`) || (hasWorkspace && folder === root)
  if (!isBelow) throw new Fault("invalid", `the folder has to be below ${root}`)
  return [folder]
}

/** What a folder holds. Half of what an earlier try had made is as good as nothing. */
async function look(
  git: Git,
  address: RepositoryAddress,
  bench: Workbench,
  signal: AbortSignal,
): Promise<"free" | "same" | "other"> {
  const listed = await bench.run(["ls", "-A", "--", git.folder], { timeoutMs: shortMs }, signal)
  if (listed.code !== 0 || listed.stdout.length === 0) return "free"
  if ((await git.maybe(["rev-parse", "--show-toplevel"], signal)) !== git.folder) return "other"
  const origin = await git.maybe(["config", "--get", "remote.origin.url"], signal)
  const hasCommits = (await git.maybe(["rev-parse", "--verify", "HEAD"], signal)) !== undefined
  if (origin !== undefined && isSameAddress(origin, address.url)) return hasCommits ? "same" : "free"
  return origin === undefined && listed.stdout.toString().trim() === ".git" && !hasCommits ? "free" : "other"
}

/** Everything the remote has. Told again after it was killed half-way, it goes on. */
export async function bring(
  { git, address }: Site,
  { depth, ref }: Provision,
  heard: (complaint: string) => void,
  bench: Workbench,
  signal: AbortSignal,
): Promise<void> {
  const made = await bench.run(["mkdir", "-p", "--", git.folder], { timeoutMs: shortMs }, signal)
  if (made.code !== 0) throw new Fault("conflict", `cannot make ${git.folder}: ${made.stderr.toString().trim()}`)
  await git.run(["init", "--quiet"], signal)
  // Another way of writing the same address stays as it is.
  const origin = await git.maybe(["config", "--get", "remote.origin.url"], signal)
  if (origin === undefined) await git.run(["remote", "add", "origin", "--", address.url], signal)
  const how = { timeoutMs: fetchMs, heard }
  await git.run(["fetch", "--progress", ...(depth === undefined ? [] : [`--depth=${depth}`]), "origin"], signal, how)
  await git.maybe(["remote", "set-head", "origin", "--auto"], signal)
  const isMissing = ref !== undefined && (await commitOf(git, ref, signal)) === undefined
  // A commit that no branch or tag leads to is there only for who asks for it.
  if (isMissing) await git.run(["fetch", "--progress", "origin", ref], signal, how)
}

async function commitOf(git: Git, ref: string, signal: AbortSignal): Promise<string | undefined> {
  for (const name of [`refs/remotes/origin/${ref}`, `refs/tags/${ref}`, ref]) {
    const commit = await git.maybe(["rev-parse", "--verify", "--quiet", `${name}^{commit}`], signal)
    if (commit !== undefined) return commit
  }
  return undefined
}

/** What is to be worked on. What somebody changed there is never thrown away: git itself refuses, and we do not insist. */
export async function checkOut(site: Site, { branch, ref }: Provision, signal: AbortSignal): Promise<string> {
  const { git, isKnown } = site
  if (branch !== undefined) return checkOutBranch(site, branch, ref, signal)
  if (ref !== undefined) {
    if (await has(git, `refs/remotes/origin/${ref}`, signal)) return checkOutBranch(site, ref, undefined, signal)
    await git.run(["checkout", "--detach", await required(git, ref, signal)], signal)
    return `at ${ref}`
  }
  if (isKnown) return catchUp(git, "as it was", signal)
  const head = await git.maybe(["symbolic-ref", "--short", "refs/remotes/origin/HEAD"], signal)
  if (head !== undefined) return checkOutBranch(site, head.replace(/^origin\//, ""), undefined, signal)
  if ((await git.maybe(["for-each-ref", "--count=1", "refs/remotes"], signal)) === "") return "it is empty"
  throw new Fault("not_found", "the remote does not say which branch is its main one", { hint: "say which: branch" })
}

async function checkOutBranch(
  { git, isKnown }: Site,
  branch: string,
  ref: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  if (await has(git, `refs/heads/${branch}`, signal)) {
    await git.run(["checkout", branch, "--"], signal)
    return catchUp(git, `branch ${branch}`, signal)
  }
  if (await has(git, `refs/remotes/origin/${branch}`, signal)) {
    await git.run(["checkout", "--track", "-b", branch, `origin/${branch}`], signal)
    return `branch ${branch} of the remote`
  }
  const from = ref === undefined ? await beginning(git, isKnown, signal) : await required(git, ref, signal)
  if (from === undefined) await git.run(["symbolic-ref", "HEAD", `refs/heads/${branch}`], signal)
  else await git.run(["checkout", "--no-track", "-b", branch, from], signal)
  return `new branch ${branch}`
}

/** Where a new branch starts: where one is, or where the remote's main one is. Undefined: there is no commit at all. */
async function beginning(git: Git, isKnown: boolean, signal: AbortSignal): Promise<string | undefined> {
  if (isKnown) return "HEAD"
  return git.maybe(["rev-parse", "--verify", "--quiet", "refs/remotes/origin/HEAD^{commit}"], signal)
}

/** Forward only, and only where nobody has changed anything. */
async function catchUp(git: Git, what: string, signal: AbortSignal): Promise<string> {
  const isDirty = (await git.text(["status", "--porcelain"], signal)) !== ""
  const behind = await git.maybe(["rev-list", "--count", "HEAD..@{upstream}"], signal)
  const ahead = await git.maybe(["rev-list", "--count", "@{upstream}..HEAD"], signal)
  if (behind === undefined || behind === "0") return what
  if (isDirty || ahead !== "0") return `${what}, ${behind} behind: it was changed here and stays as it is`
  await git.run(["merge", "--ff-only", "--quiet", "@{upstream}"], signal)
  return `${what}, ${behind} newer`
}

async function required(git: Git, ref: string, signal: AbortSignal): Promise<string> {
  const commit = await commitOf(git, ref, signal)
  if (commit !== undefined) return commit
  throw new Fault("not_found", `the repository has no ${ref}`)
}

async function has(git: Git, ref: string, signal: AbortSignal): Promise<boolean> {
  return (await git.maybe(["show-ref", "--verify", "--quiet", ref], signal)) !== undefined
}
