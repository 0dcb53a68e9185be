import { Fault } from "@warren/base/fault.ts"
import type { Workbench } from "../git/workbench.ts"

/** A file of a session as it is compared: what it is, and when it was written. */
export interface Listed {
  readonly size: number
  readonly writtenAt: string
  /** Where a link leads; absent of a file. */
  readonly link?: string | undefined
}

export const listingLimits = {
  /** Of one session; more are not looked at. */
  filesMax: 50_000,
  bytesMax: 16 * 1024 * 1024,
  timeoutMs: 60_000,
  /** Files whose content is read at once. */
  digestsAtOnce: 200,
} as const

/** What programs make again by themselves, or git keeps: differences in it say nothing. */
const passedOver = [".git", "node_modules", ".cache", ".npm", ".venv", "__pycache__"]

/** Where to look: in a folder, at all of it or at some folders below it. */
export interface Ground {
  readonly folder: string
  readonly within: readonly string[]
}

/** Where people and agents work, unless they say otherwise. What programs keep for themselves in a home is not theirs. */
export const usualGround: Ground = { folder: "/", within: ["workspace", "home/user"] }
const ownOfPrograms = "home/user/.*"

/** Every file and link there, by its path below the folder. */
export async function listingOf(
  bench: Workbench,
  { folder, within }: Ground,
  signal: AbortSignal,
): Promise<{ files: Map<string, Listed>; isCut: boolean }> {
  const { filesMax, bytesMax, timeoutMs } = listingLimits
  const over = passedOver.flatMap((name) => ["-name", name, "-o"])
  const argv = ["find", ...within, "(", ...over, "-path", ownOfPrograms, ")", "-prune"]
  const found = [
    "-o",
    "-type",
    "f",
    "-printf",
    "%s\\t%T@\\t\\t%p\\0",
    "-o",
    "-type",
    "l",
    "-printf",
    "0\\t\\t%l\\t%p\\0",
  ]
  const ran = await bench.run([...argv, ...found], { cwd: folder, timeoutMs, outputBytesMax: bytesMax }, signal)
  // A folder that cannot be read is passed over: what was found counts.
  if (ran.stdout.length === 0 && ran.code !== 0) {
    const said = ran.stderr.toString().trim().split("\n")[0] ?? ""
    throw new Fault("unsupported", `the files of the session could not be listed: ${said}`, {
      hint: "comparing needs the program find, as GNU's is",
    })
  }
  const lines = ran.stdout.toString().split("\0").slice(0, -1)
  const files = new Map(lines.slice(0, filesMax).map(entryOf))
  return { files, isCut: ran.isCut || lines.length > filesMax }
}

/** What is in files, as a short text each; of those that can be read. */
export async function digestsOf(
  bench: Workbench,
  folder: string,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const { digestsAtOnce, bytesMax, timeoutMs } = listingLimits
  const found = new Map<string, string>()
  for (let at = 0; at < paths.length; at += digestsAtOnce) {
    const some = paths.slice(at, at + digestsAtOnce)
    const argv = ["sha256sum", "--zero", "--", ...some.map((path) => `./${path}`)]
    const { stdout } = await bench.run(argv, { cwd: folder, timeoutMs, outputBytesMax: bytesMax }, signal)
    for (const line of stdout.toString().split("\0").slice(0, -1)) {
      const [, digest = "", path = ""] = /^([0-9a-f]{64})[ *]{2}\.\/(.*)$/s.exec(line) ?? []
      found.set(path, digest)
    }
  }
  return found
}

function entryOf(line: string): [string, Listed] {
  const [size = "", writtenAt = "", link = "", ...path] = line.split("\t")
  return [
    path.join("\t").replace(/^\.\//, ""),
    { size: Number(size), writtenAt, ...(writtenAt === "" ? { link } : {}) },
  ]
}
