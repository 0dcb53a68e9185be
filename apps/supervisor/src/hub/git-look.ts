import { existsSync, lstatSync } from "node:fs"
import { dirname, join } from "node:path"
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { parseStatus, statusArguments, type GitStatus } from "@warren/base/git-status.ts"
import type { HubUp } from "@warren/protocol/hub/messages.ts"

const run = promisify(execFile)
/** An agent's answer is not held back for longer than this by what is told with it. */
const lookMs = 3_000
const outputBytesMax = 8 * 1024 * 1024
const pathsMax = 1_000

interface Look extends GitStatus {
  /** When each path was last touched, and how large it is. */
  readonly marks: ReadonlyMap<string, string>
}

/** Sees what a turn did to the repository an agent works in. Where there is none, it costs nothing. */
export class GitLook {
  readonly #folder: string
  readonly #env: Readonly<Record<string, string | undefined>>

  constructor(folder: string, env: Readonly<Record<string, string | undefined>>) {
    this.#folder = folder
    this.#env = env
  }

  /** What to tell when the turn is over. */
  async begin(): Promise<() => Promise<HubUp[]>> {
    const before = await this.#look()
    return async () => {
      const after = await this.#look()
      return after ? told(after, await this.#changed(before, after)) : []
    }
  }

  async #look(): Promise<Look | undefined> {
    const top = topOf(this.#folder)
    if (top === undefined) return undefined
    const said = await this.#git(top, ...statusArguments)
    if (said === undefined) return undefined
    const status = parseStatus(said)
    const paths = status.paths.slice(0, pathsMax)
    return { ...status, paths, marks: new Map(paths.map((path) => [path, markOf(join(top, path))])) }
  }

  /** What is otherwise than before, and what was committed meanwhile. */
  async #changed(before: Look | undefined, after: Look): Promise<string[]> {
    const touched = after.paths.filter((path) => after.marks.get(path) !== before?.marks.get(path))
    // What was not committed and is as it was again, or committed now.
    const settled = (before?.paths ?? []).filter((path) => !after.marks.has(path))
    const committed = await this.#between(before?.commit, after.commit)
    return [...new Set([...touched, ...settled, ...committed])].slice(0, pathsMax)
  }

  async #between(from: string | undefined, to: string | undefined): Promise<string[]> {
    const top = topOf(this.#folder)
    if (top === undefined || from === undefined || to === undefined || from === to) return []
    const said = await this.#git(top, "diff", "--name-only", "-z", "--no-ext-diff", from, to)
    return (said ?? "").split("\0").filter((path) => path !== "")
  }

  async #git(top: string, ...args: string[]): Promise<string | undefined> {
    const settings = [`safe.directory=${top}`, "core.fsmonitor=false"].flatMap((setting) => ["-c", setting])
    const env = { ...this.#env, GIT_OPTIONAL_LOCKS: "0", GIT_TERMINAL_PROMPT: "0" }
    const how = { env, timeout: lookMs, killSignal: "SIGKILL" as const, maxBuffer: outputBytesMax }
    try {
      return (await run("git", ["-C", top, ...settings, ...args], how)).stdout
    } catch {
      // No git, no repository after all, or too large to look at: nothing is told.
      return undefined
    }
  }
}

function told({ branch, commit, paths }: Look, changed: string[]): HubUp[] {
  const state: HubUp = {
    type: "git-state",
    ...(branch === undefined ? {} : { branch: branch.slice(0, 256) }),
    ...(commit === undefined ? {} : { commit }),
    dirty: paths.length > 0,
  }
  return changed.length === 0 ? [state] : [{ type: "files-changed", paths: changed }, state]
}

function topOf(folder: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return at
    if (at === dirname(at)) return undefined
  }
}

function markOf(path: string): string {
  try {
    const { mtimeNs, size, ino } = lstatSync(path, { bigint: true })
    return `${mtimeNs} ${size} ${ino}`
  } catch {
    return "gone"
  }
}
