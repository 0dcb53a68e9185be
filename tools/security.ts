import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** What security suites say they have done: see e2e/security/results.ts. */
interface Recorded {
  readonly cases: number
  readonly bad: number
  readonly seed?: number | string
  readonly at: string
  readonly commit: string
  readonly machine: string
  readonly [more: string]: number | string | undefined
}

interface Kept {
  readonly name: string
  readonly latest: Recorded
  readonly longest: Recorded
}

const folder = ".cache/security"
const page = "docs/operating/security-results.md"
const named = new Set(["cases", "bad", "seed", "at", "commit", "machine"])

const all = readdirSync(folder)
  .filter((name) => name.endsWith(".json"))
  .toSorted()
  .map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as Kept)
const head = [
  "# What the security suites came to",
  "",
  "Made by `npm run security` of what the suites of `e2e/` wrote down when they last ran (`record` in `e2e/security/results.ts`). The longest run of each",
  "suite that found nothing, with its seed, and the latest. _Of n clean cases one knows with 95 % certainty only that fewer than 3/n go wrong._",
  "",
  "| Suite | Longest run: cases | went wrong | seed | more | when, at which commit | Latest run: cases | went wrong |",
  "|---|--:|--:|---|---|---|--:|--:|",
]
const rows = all.map(({ name, longest, latest }) => {
  const more = Object.entries(longest)
    .filter(([key]) => !named.has(key))
    .map(([key, value]) => `${key} ${String(value)}`)
  const when = `${longest.at.slice(0, 16).replace("T", " ")}, ${longest.commit}`
  const last = `${count(latest.cases)} | ${count(latest.bad)}`
  return `| ${name} | ${count(longest.cases)} | ${count(longest.bad)} | ${longest.seed ?? ""} | ${more.join(", ")} | ${when} | ${last} |`
})
const machines = [...new Set(all.map(({ longest }) => longest.machine))].map((one) => `- ${one}`)
writeFileSync(page, [...head, ...rows, "", "Machines:", "", ...machines, ""].join("\n"))
console.log(`wrote ${page}: ${all.length} suites`)

function count(value: number): string {
  return value.toLocaleString("en-US")
}
