import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { expect, it } from "vitest"
import { checkout, withCheckout } from "../testing/elsewhere.ts"

/** Nobody's: it owns nothing and has no home. */
const person = 64_321

it("holds all of it as an ordinary user", { timeout: 180_000 }, async ({ skip }) => {
  if (process.getuid?.() !== 0) return skip("this is an ordinary user already")
  const folder = "packages/drivers/src/process"
  const files = ["driver", "confinement", "crash", "verify"].map((name) => join(folder, `${name}.live.test.ts`))
  // The runner loads the configuration without writing beside it.
  const vitest = [join(checkout, "node_modules/vitest/vitest.mjs"), "run", "--configLoader", "runner", ...files]
  const drop = ["setpriv", "--reuid", String(person), "--regid", String(person), "--clear-groups", "--inh-caps=-all"]
  const child = spawn(...withCheckout([...drop, process.execPath, ...vitest]), {
    env: { PATH: process.env["PATH"], HOME: "/", NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  })
  let said = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (said += chunk.toString()))
  const [code] = (await once(child, "close")) as [number | null]
  expect(code === 0 ? "" : said).toBe("")
  expect(said).toMatch(/Tests {2}\d+ passed \| \d+ skipped/)
})
