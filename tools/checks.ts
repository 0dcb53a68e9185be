import { violations } from "./architecture.ts"
import { runTool, type Outcome } from "./command.ts"
import { staleFiles } from "./reference/files.ts"
import { sourceFiles } from "./source-files.ts"

export interface Check {
  readonly name: string
  /** Looks at the tree in `folder`, and changes nothing. */
  run(folder: string): Promise<Outcome>
}

/** Longest first, so that two at a time end together. */
export const checks: readonly Check[] = [
  { name: "types", run: (folder) => runTool("tsc", ["-p", ".", "--pretty", "false"], folder) },
  // The page is checked by what a browser has, everything else by what Node has.
  { name: "types of the page", run: (folder) => runTool("tsc", ["-p", "apps/web", "--pretty", "false"], folder) },
  { name: "lint", run: (folder) => runTool("oxlint", ["--type-aware", "--deny-warnings"], folder) },
  { name: "dead code", run: (folder) => runTool("knip", ["--no-progress", "--no-config-hints"], folder) },
  { name: "format", run: (folder) => runTool("oxfmt", ["--check", "."], folder) },
  { name: "architecture", run: architecture },
  { name: "generated files", run: generated },
]

async function architecture(folder: string): Promise<Outcome> {
  const found = violations(await sourceFiles(folder))
  return {
    ok: found.length === 0,
    output: found.map(({ rule, file, message }) => `${file}: ${rule}: ${message}`).join("\n"),
  }
}

async function generated(folder: string): Promise<Outcome> {
  const stale = await staleFiles(folder)
  return { ok: stale.length === 0, output: stale.map((path) => `${path} is out of date: npm run generate`).join("\n") }
}
