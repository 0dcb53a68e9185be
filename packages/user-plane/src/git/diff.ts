import { randomBytes } from "node:crypto"
import { posix } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { changedFilesMax, diffBytesMax, type ChangedFile } from "@warren/protocol/user-plane/git.ts"
import { parseChanges } from "./changed-files.ts"
import type { Repository } from "./repository.ts"
import type { Ran } from "./workbench.ts"

const flags = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames"]
const listBytesMax = 4 * 1024 * 1024
const shortMs = 10_000

export async function changedFiles(
  repository: Repository,
  against: string,
  signal: AbortSignal,
): Promise<{ files: ChangedFile[]; isCut: boolean }> {
  const base = await repository.commitOf(against, signal)
  const args = [...flags, "--raw", "--numstat", "-z", base, "--"]
  const { stdout, isCut } = await compared(repository, args, listBytesMax, signal)
  const files = parseChanges(stdout.toString())
  return { files: files.slice(0, changedFilesMax), isCut: isCut || files.length > changedFilesMax }
}

export async function diffOf(
  repository: Repository,
  { against, path }: { readonly against: string; readonly path?: string | undefined },
  signal: AbortSignal,
): Promise<{ text: string; isCut: boolean }> {
  const base = await repository.commitOf(against, signal)
  // Literal: a name that looks like a pattern is a name.
  const only = path === undefined ? [] : [`:(literal)${path}`]
  const { stdout, isCut } = await compared(repository, [...flags, base, "--", ...only], diffBytesMax, signal)
  if (!isCut) return { text: stdout.toString(), isCut }
  // Whole lines only: what was cut in the middle of a letter is none.
  return { text: stdout.subarray(0, stdout.lastIndexOf("\n") + 1).toString(), isCut }
}

/** With an index of its own, in which new files are announced: the repository's stays as it is, also while an agent works. */
async function compared(
  { git, bench }: Repository,
  args: string[],
  bytesMax: number,
  signal: AbortSignal,
): Promise<Ran> {
  const index = `/tmp/.warren-index-${randomBytes(8).toString("hex")}`
  const env = { GIT_INDEX_FILE: index }
  try {
    const real = await git.text(["rev-parse", "--git-path", "index"], signal)
    const from = posix.resolve(git.folder, real.trim())
    // There is none before anything was ever added.
    await bench.run(["cp", "--", from, index], { timeoutMs: shortMs }, signal)
    const top = (await git.text(["rev-parse", "--show-toplevel"], signal)).trim()
    await git.run(["add", "--intent-to-add", "--all", "--", top], signal, { env })
    const ran = await git.run(args, signal, { env, outputBytesMax: bytesMax, answers: [0, -1] })
    if (ran.code === null && !ran.isCut) throw new Fault("timeout", "git took too long to compare")
    return ran
  } finally {
    await bench
      .run(["rm", "-f", "--", index], { timeoutMs: shortMs }, AbortSignal.timeout(shortMs))
      .catch(() => undefined)
  }
}
