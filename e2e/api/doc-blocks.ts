import { readdirSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"

const root = resolve(import.meta.dirname, "../..")

/** Something on a page that is to be copied. */
export interface Block {
  /** `docs/guides/cli.md:12`. */
  readonly place: string
  readonly language: string
  /** What stands behind the language. */
  readonly mark: string
  readonly code: string
}

const fence = /^( {0,3})```(\w*)( [^\n]*)?\n(.*?)^\1```$/gms
/** Indented lines are for a shell, too. */
const indented = /(?:^ {4}(?:sudo )?warren .*\n)+/gm

/** What people read; the rest of the reference is made of the programs themselves, and what is about insides shows wires. */
export function pages(): string[] {
  const folders = ["start", "guides", "operating", "concepts"]
  const found = folders.flatMap((name) => readdirSync(join(root, "docs", name)).map((file) => `docs/${name}/${file}`))
  return ["README.md", ...found.filter((path) => path.endsWith(".md")), "docs/reference/e2b.md"]
}

/** Everything in fences. */
export function fencedIn(path: string): Block[] {
  const text = readFileSync(join(root, path), "utf8")
  return [...text.matchAll(fence)].map((match) => {
    const [, , language = "", mark = "", code = ""] = match
    return { place: placeOf(path, text, match.index), language, mark: mark.trim(), code }
  })
}

/** Everything for a shell: in fences, or indented. */
export function shellIn(path: string): Block[] {
  const text = readFileSync(join(root, path), "utf8")
  // Each fence gives way to as many lines without anything, so that what is left keeps its place.
  const outside = text.replaceAll(fence, (block) => block.replaceAll(/[^\n]/g, ""))
  const lines = [...outside.matchAll(indented)].map((match) => ({
    ...{ place: placeOf(path, outside, match.index), language: "sh", mark: "" },
    code: match[0].replaceAll(/^ {4}/gm, ""),
  }))
  return [...fencedIn(path).filter(({ language }) => language === "sh"), ...lines]
}

function placeOf(path: string, text: string, index: number): string {
  return `${path}:${text.slice(0, index).split("\n").length}`
}
