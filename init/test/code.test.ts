import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { build } from "./client.ts"

const run = promisify(execFile)

describe("the C code", () => {
  it("passes its unit tests with sanitizers", async () => {
    const { stdout } = await run(await build("unit"))
    expect(stdout).toMatch(/^\d+ checks, 0 failed\n$/)
  })

  // Seconds per target; more with FUZZ_SECONDS, for a night.
  const seconds = process.env["FUZZ_SECONDS"] ?? "2"
  for (const target of ["frame", "json"] as const) {
    it(`survives fuzzing of its ${target} reader`, { timeout: (Number(seconds) + 60) * 1000 }, async () => {
      const scratch = await mkdtemp(join(tmpdir(), "wi-fuzz-"))
      try {
        const seeds = join(import.meta.dirname, "..", "fuzz", "corpus", target)
        const args = [`-max_total_time=${seconds}`, "-max_len=8192", `-artifact_prefix=${scratch}/`, scratch, seeds]
        const { stderr } = await run(await build(`fuzz-${target}`), args, { maxBuffer: 1 << 26 })
        expect(stderr).toMatch(/Done \d+ runs/)
      } finally {
        await rm(scratch, { recursive: true, force: true })
      }
    })
  }
})
