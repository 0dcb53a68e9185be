import { existsSync } from "node:fs"
import { join } from "node:path"
import { ProcessGroup, type Launch } from "@warren/agents/process-group.ts"
import { textLines } from "@warren/agents/text-lines.ts"
import { Fault } from "@warren/base/fault.ts"

export interface CheckoutOptions {
  readonly repo: string
  readonly branch?: string | undefined
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly who: Pick<Launch, "uid" | "gid">
}

const complaintCharsMax = 2_000
const stopGraceMs = 1_000

/** Brings a repository into a folder, unless one is there; then the branch: the remote's if it has it, otherwise a new one. */
export async function checkout(
  { repo, branch, folder, env, who }: CheckoutOptions,
  signal: AbortSignal,
): Promise<void> {
  const git = (...args: string[]): Promise<string> =>
    run({ cmd: "git", args: [...safe, ...args], env: gitEnvironment(env), ...who }, signal)
  if (!existsSync(join(folder, ".git"))) await git("clone", "--", urlOf(repo), folder)
  if (branch === undefined) return
  const at = ["-C", folder]
  const heads = await git(
    ...at,
    "for-each-ref",
    "--format=%(refname)",
    `refs/heads/${branch}`,
    `refs/remotes/origin/${branch}`,
  )
  if (heads.includes(`refs/heads/${branch}\n`)) await git(...at, "checkout", branch, "--")
  else if (heads.includes(`refs/remotes/origin/${branch}\n`))
    await git(...at, "checkout", "--track", "-b", branch, `origin/${branch}`)
  else await git(...at, "checkout", "-b", branch)
}

/** What a repository's address may not make git do. */
const safe = ["-c", "protocol.ext.allow=never"]

function urlOf(repo: string): string {
  if (repo.startsWith("-")) throw new Fault("invalid", "that is no repository")
  return /^[\w.-]+\/[\w.-]+$/.test(repo) ? `https://github.com/${repo}.git` : repo
}

/** A token goes along as a header, given in the environment: no file and no URL ever holds it. */
function gitEnvironment(env: CheckoutOptions["env"]): Record<string, string | undefined> {
  const token = env["GITHUB_TOKEN"]
  const quiet = { ...env, GIT_TERMINAL_PROMPT: "0" }
  if (!token || env["GIT_CONFIG_COUNT"] !== undefined) return quiet
  const basic = Buffer.from(`x-access-token:${token}`).toString("base64")
  return {
    ...quiet,
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "http.https://github.com/.extraHeader",
    GIT_CONFIG_VALUE_0: `Authorization: Basic ${basic}`,
  }
}

async function run(launch: Launch, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted()
  const group = await ProcessGroup.start(launch)
  const abort = (): void => void group.stop(stopGraceMs)
  signal.addEventListener("abort", abort, { once: true })
  try {
    group.stdin.end()
    const [output, complaint] = await Promise.all([textOf(group.stdout), textOf(group.stderr)])
    const { code } = await group.exited
    signal.throwIfAborted()
    if (code !== 0)
      throw new Fault("unavailable", `git ended with ${code}: ${complaint.trim().slice(-complaintCharsMax)}`)
    return output
  } finally {
    signal.removeEventListener("abort", abort)
    await group.stop(stopGraceMs)
  }
}

async function textOf(stream: ProcessGroup["stdout"]): Promise<string> {
  let text = ""
  for await (const line of textLines(stream, complaintCharsMax)) text = (text + line).slice(-64 * 1024)
  return text
}
