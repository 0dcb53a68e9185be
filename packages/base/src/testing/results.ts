import { execFileSync } from "node:child_process"
import { accessSync, constants, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { cpus, release } from "node:os"
import { join, resolve } from "node:path"
import { errnoOf } from "../fault.ts"

/** Beside the other things a machine makes for itself: git does not know it. `npm run security` makes the page of it. */
const folder = resolve(import.meta.dirname, "../../../../.cache/security")

/** What a suite has tried. Further fields are numbers and words for the reader: kills, milliseconds, drivers. */
interface Outcome {
  readonly cases: number
  /** How many of them went as they must not. A suite that records any fails, too; the page shows it all the same. */
  readonly bad?: number
  /** With it the run can be had again. */
  readonly seed?: number | string
  readonly [more: string]: number | string | undefined
}

interface Recorded extends Outcome {
  readonly at: string
  readonly commit: string
  readonly machine: string
}

/** Both are kept: CI's short run says that it still holds, the long run of a night how well it was looked at. */
interface Kept {
  readonly name: string
  readonly latest: Recorded
  readonly longest: Recorded
}

/**
 * Says what a security suite has done: `record("file-races", { cases: 4_000, bad: 0, seed })`. `name` is words with
 * dashes, one per suite; calling it again replaces what this run said before.
 */
export function record(name: string, outcome: Outcome): void {
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) throw new Error(`"${name}" is no name of a suite: words with dashes`)
  // Somebody ran one test of the file, and it was another.
  if (outcome.cases === 0 || !canWrite()) return
  const file = join(folder, `${name}.json`)
  const latest: Recorded = { bad: 0, ...outcome, at: new Date().toISOString(), commit: commit(), machine: machine() }
  const before = readKept(file)?.longest
  // What went wrong once is mended, or the latest says so again.
  const longest = before && before.bad === 0 && before.cases > latest.cases ? before : latest
  const kept: Kept = { name, latest, longest }
  // Two suites at a time, and a page being made of them: whoever reads finds a whole file.
  writeFileSync(`${file}.${process.pid}`, `${JSON.stringify(kept, undefined, 2)}\n`)
  renameSync(`${file}.${process.pid}`, file)
}

/** Not where another test runs a suite again as an ordinary user, who only reads this checkout. */
function canWrite(): boolean {
  try {
    mkdirSync(folder, { recursive: true })
    accessSync(folder, constants.W_OK)
    return true
  } catch (failure) {
    if (["EACCES", "EROFS"].includes(errnoOf(failure))) return false
    throw failure
  }
}

function readKept(file: string): Kept | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Kept
  } catch {
    return undefined
  }
}

function commit(): string {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8", cwd: import.meta.dirname }).trim()
  } catch {
    return "unknown"
  }
}

function machine(): string {
  return `Linux ${release()}, ${cpus().length} cores, Node ${process.versions.node}`
}
