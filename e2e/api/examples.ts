import { readdirSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"

const root = resolve(import.meta.dirname, "../..")

export interface Example {
  /** `docs/guides/sdk.md:12`. */
  readonly place: string
  readonly language: "ts" | "sh"
  readonly code: string
  /** What it says it prints: behind `console.log(…) //`. */
  readonly printed: readonly string[]
}

/** Every example in the README and the guides that says it is tested: its fence is marked `ts test` or `sh test`. */
export function testedExamples(): Example[] {
  const guides = readdirSync(join(root, "docs/guides")).map((name) => `docs/guides/${name}`)
  return ["README.md", ...guides.filter((path) => path.endsWith(".md"))].flatMap((path) =>
    examplesIn(path, readFileSync(join(root, path), "utf8")),
  )
}

export function examplesIn(path: string, text: string): Example[] {
  return [...text.matchAll(/^```(ts|sh) test\n(.*?)^```$/gms)].map((match) => {
    const [, language = "", code = ""] = match
    const line = text.slice(0, match.index).split("\n").length
    const printed = [...code.matchAll(/console\.log\(.*\)+ ?\/\/ (.*)$/gm)].map(([, told = ""]) => told)
    return { place: `${path}:${line}`, language: language as Example["language"], code, printed }
  })
}
