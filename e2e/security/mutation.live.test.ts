import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { messageOf } from "@warren/base/fault.ts"
import type { Driver, Sandbox } from "@warren/drivers/driver.ts"
import { exec } from "@warren/drivers/init/exec.ts"
import type { StartRequest } from "@warren/drivers/oci/launcher.ts"
import { ociSubject } from "@warren/drivers/oci/testing/subject.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { filterDifferences } from "../probes/filter-table.ts"
import { differences, type PolicyName } from "../probes/policy.ts"
import { parse, Probe, usualLimits } from "../probes/probe.ts"
import { mutantsOf, type Mutant } from "./mutation/mutant.ts"
import { record } from "./results.ts"

/**
 * WARREN_MUTATE=1 takes away every defence in turn; by itself every n-th, so that the machinery is known to work.
 * WARREN_MUTATE_REPORT=FILE writes down what noticed which.
 */
const isWhole = process.env["WARREN_MUTATE"] === "1"
const report = process.env["WARREN_MUTATE_REPORT"]
const sampleEvery = 31
const never = new AbortController().signal
const inside = "/opt/probe"

interface Outcome {
  readonly name: string
  /** What failed for the want of it; undefined when nothing did. */
  readonly noticed: string | undefined
}

/** Of each, why nothing needs to notice: another defence holds, or this kernel has nothing to defend. */
function excused(): ReadonlyMap<string, string> {
  const [, ...lines] = readFileSync(join(import.meta.dirname, "mutation/unnoticed.csv"), "utf8")
    .trim()
    .split("\n")
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(",")), line.slice(line.indexOf(",") + 1)]))
}

describe.skipIf(process.getuid?.() !== 0)("a defence that is taken away", () => {
  let change: Mutant["change"] = (request) => request
  let asked: StartRequest | undefined
  const spoil = (request: StartRequest): StartRequest => {
    asked ??= request
    return change(request)
  }
  const subject = ociSubject({ spoil })
  let driver: Driver
  let probe: Probe

  beforeAll(async () => {
    probe = await Probe.open()
    driver = await subject.open()
  })
  afterAll(async () => {
    await driver[Symbol.asyncDispose]()
    await probe[Symbol.asyncDispose]()
  })

  /** The first complaint about a sandbox that is started like this. */
  async function complaint(mutant: Mutant): Promise<string | undefined> {
    const spec = specOf(await subject.image(), { profile: "dev", mounts: [probe.mount(inside)] })
    change = mutant.change
    try {
      await driver.create(spec, never)
      return await found(await driver.start(spec.id, never))
    } catch (failure) {
      return `posture: ${messageOf(failure)}`
    } finally {
      change = (request) => request
      await driver.destroy(spec.id)
    }
  }

  async function found(sandbox: Sandbox): Promise<string | undefined> {
    for (const [user, policy] of [
      ["user", "oci-dev"],
      ["root", "oci-dev-root"],
    ] as const satisfies readonly (readonly [string, PolicyName])[]) {
      const { stdout } = await exec(sandbox, { argv: [inside, ...probe.words, ...usualLimits], user })
      const [first] = differences(parse(stdout.toString()), policy)
      if (first !== undefined) return `probe, as ${user}: ${first}`
      const told = await exec(sandbox, { argv: [inside, "--filter"], user })
      const [call] = filterDifferences(told.stdout.toString(), "oci-dev")
      if (call !== undefined) return `filter, as ${user}: ${call}`
    }
    return undefined
  }

  it("is missed by somebody", { timeout: 1_200_000 }, async () => {
    expect(await complaint({ name: "nothing", change: (request) => request })).toBeUndefined()
    if (!asked) throw new Error("nothing was asked for")
    const all = mutantsOf(asked)
    const chosen = isWhole ? all : all.filter((_, index) => index % sampleEvery === 0)
    const outcomes: Outcome[] = []
    for (const mutant of chosen) outcomes.push({ name: mutant.name, noticed: await complaint(mutant) })
    if (report) {
      const rows = outcomes.map(
        ({ name, noticed }) => `${name}\t${noticed?.replaceAll("\n", " ").slice(0, 160) ?? "NOBODY"}`,
      )
      writeFileSync(report, `${rows.join("\n")}\n`)
    }
    const reasons = excused()
    const unnoticed = outcomes.filter(({ noticed }) => noticed === undefined).map(({ name }) => name)
    console.log(`mutation: ${outcomes.length} of ${all.length} defences taken away, ${unnoticed.length} unnoticed`)
    const missed = unnoticed.filter((name) => !reasons.has(name))
    record("mutation-of-sandboxes", { cases: outcomes.length, bad: missed.length, heldOtherwise: unnoticed.length })
    expect(missed).toEqual([])
  })
})
