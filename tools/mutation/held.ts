import { readFileSync } from "node:fs"
import { join } from "node:path"

interface Held {
  readonly file: string
  readonly what: string
  readonly why: string
}

/** What may be taken out without anybody noticing, and why: another defence holds, or it is none. */
export function held(): readonly Held[] {
  const [, ...lines] = readFileSync(join(import.meta.dirname, "held.tsv"), "utf8")
    .trim()
    .split("\n")
  return lines.map((line) => {
    const [file = "", what = "", why = ""] = line.split("\t")
    return { file, what, why }
  })
}

/** By the end of the file's path. */
export function reasonFor(path: string, what: string): string | undefined {
  return held().find((one) => path.endsWith(one.file) && one.what === what)?.why
}
