import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import type { Page } from "playwright-core"

interface Violation {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

/** What axe finds on the page as it is now that keeps somebody from using it. */
export async function barriers(page: Page): Promise<string[]> {
  const file = createRequire(import.meta.url).resolve("axe-core/axe.min.js")
  // Not as a script element: the page's policy would not let it run, and should not.
  await page.evaluate(await readFile(file, "utf8"))
  const found = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } }
    return (await axe.run()).violations
  })
  const serious = found.filter(({ impact }) => impact === "serious" || impact === "critical")
  return serious.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(" | ")}`,
  )
}
