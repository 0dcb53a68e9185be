import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** Runs everything here against the published packages, and writes down what works: `npx tsx e2e/e2b/matrix.ts`. */
interface Outcome {
  readonly ancestorTitles: readonly string[]
  readonly title: string
  readonly status: string
}

const target = "docs/reference/e2b.md"
const mark = "<!-- Below this line: written by e2e/e2b/matrix.ts. -->"
const require = createRequire(import.meta.url)
const versionOf = (name: string): string =>
  (JSON.parse(readFileSync(join(require.resolve(name), "../../package.json"), "utf8")) as { version: string }).version

function outcomes(): Outcome[] {
  const folder = mkdtempSync(join(tmpdir(), "e2b-matrix-"))
  try {
    const file = join(folder, "results.json")
    const args = ["vitest", "run", "e2e/e2b", "--reporter=json", `--outputFile=${file}`]
    spawnSync("npx", args, { stdio: ["ignore", "inherit", "inherit"] })
    const { testResults } = JSON.parse(readFileSync(file, "utf8")) as { testResults: { assertionResults: Outcome[] }[] }
    return testResults.flatMap(({ assertionResults }) => assertionResults)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const signs: Readonly<Record<string, string>> = { passed: "yes", failed: "**no**" }

function rows(all: readonly Outcome[]): string {
  const byTitle = new Map<string, Map<string, string>>()
  for (const { ancestorTitles, title, status } of all) {
    const [, area = "", version = "2.51"] = /^(.*?)(?: by '([\d.]+)')?$/.exec(ancestorTitles[0] ?? "") ?? []
    const key = `${area} | ${title}`
    byTitle.set(key, (byTitle.get(key) ?? new Map<string, string>()).set(version, signs[status] ?? status))
  }
  const lines = [...byTitle].map(
    ([key, found]) => `| ${key} | ${found.get("2.51") ?? "–"} | ${found.get("2.45") ?? "–"} |`,
  )
  return lines.toSorted((a, b) => a.localeCompare(b)).join("\n")
}

const all = outcomes()
const packages = [
  `\`e2b\` ${versionOf("e2b")} and ${versionOf("e2b-2.45")}`,
  `\`@e2b/code-interpreter\` ${versionOf("@e2b/code-interpreter")}`,
  `\`@computesdk/e2b\` ${versionOf("@computesdk/e2b")}`,
]
const passed = all.filter(({ status }) => status === "passed").length
const [head = ""] = readFileSync(target, "utf8").split(mark)
const table = `| of | what | e2b 2.51 | e2b 2.45 |\n|---|---|---|---|\n${rows(all)}`
writeFileSync(
  target,
  `${head}${mark}\n\n## What was run\n\n${packages.join(", ")}, as they are published: ${passed} of ${all.length} scenarios passed.\nA dash: that version has no such thing, or it was tried with one.\n\n${table}\n`,
)
process.exitCode = passed === all.length ? 0 : 1
