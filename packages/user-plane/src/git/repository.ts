import { parseStatus, statusArguments } from "@warren/base/git-status.ts"
import { Fault } from "@warren/base/fault.ts"
import type { GitState } from "@warren/protocol/user-plane/git.ts"
import { Git } from "./git.ts"
import type { Workbench } from "./workbench.ts"

const statusBytesMax = 16 * 1024 * 1024

/** A repository in a session. */
export class Repository {
  readonly git: Git
  readonly bench: Workbench

  constructor(bench: Workbench, folder: string) {
    this.bench = bench
    this.git = new Git(bench, folder)
  }

  async state(signal: AbortSignal): Promise<GitState> {
    const { folder } = this.git
    const none = { folder, isRepository: false, isDirty: false, changes: 0 }
    if ((await this.git.maybe(["rev-parse", "--is-inside-work-tree"], signal)) !== "true") return none
    const said = await this.git.text(statusArguments, signal, { outputBytesMax: statusBytesMax })
    const { paths, ...heads } = parseStatus(said)
    const remote = await this.git.maybe(["config", "--get", "remote.origin.url"], signal)
    return {
      ...{ folder, isRepository: true, ...heads, isDirty: paths.length > 0, changes: paths.length },
      ...(remote === undefined ? {} : { remote: withoutUser(remote) }),
    }
  }

  /** The commit that something is compared with. */
  async commitOf(against: string, signal: AbortSignal): Promise<string> {
    await this.#require(signal)
    if (against === "head") return (await this.#parse("HEAD", signal)) ?? emptyTree
    if (against === "base") return this.#base(signal)
    const commit = await this.#parse(against, signal)
    if (commit !== undefined) return commit
    throw new Fault("not_found", `the repository has no ${against}`)
  }

  /** The remote's main branch, by its short name. */
  async mainBranch(signal: AbortSignal): Promise<string | undefined> {
    const head = await this.git.maybe(["symbolic-ref", "--short", "refs/remotes/origin/HEAD"], signal)
    return head?.replace(/^origin\//, "")
  }

  async #base(signal: AbortSignal): Promise<string> {
    for (const name of ["refs/remotes/origin/HEAD", "@{upstream}"]) {
      const commit = await this.git.maybe(["merge-base", "HEAD", name], signal)
      if (commit !== undefined) return commit
    }
    throw new Fault("not_found", "the repository does not know the remote's main branch", {
      hint: "say which: against",
    })
  }

  #parse(name: string, signal: AbortSignal): Promise<string | undefined> {
    return this.git.maybe(["rev-parse", "--verify", "--quiet", `${name}^{commit}`], signal)
  }

  async #require(signal: AbortSignal): Promise<void> {
    if ((await this.git.maybe(["rev-parse", "--is-inside-work-tree"], signal)) === "true") return
    throw new Fault("not_found", `there is no repository in ${this.git.folder}`, { hint: "say where: folder" })
  }
}

/** What git calls a tree with nothing in it: what a repository without a commit is compared with. */
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

/** Somebody may have put a token there. */
function withoutUser(url: string): string {
  return url.replace(/^(https?:\/\/)[^/@]*@/, "$1")
}
