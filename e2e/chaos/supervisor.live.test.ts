import { randomInt } from "node:crypto"
import { Fault } from "@warren/base/fault.ts"
import { randomFrom } from "@warren/drivers/oci/testing/random.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Home } from "../runner/home.ts"
import type { Talk } from "../runner/talk.ts"
import { record } from "../security/results.ts"
import { agentChapter } from "./agent-chapter.ts"
import { faultOf } from "./cases.ts"
import { FaultBuild } from "./fault-build.ts"
import { namesOf } from "./names.ts"
import { remains } from "./remains.ts"
import { Trial, type Strike } from "./trial.ts"

/** WARREN_FAILPOINTS: how many deaths are drawn from WARREN_SEED, or `all`: at each name, each time it is passed. */
const asked = process.env["WARREN_FAILPOINTS"] ?? "1"
const seed = Number(process.env["WARREN_SEED"] ?? randomInt(2 ** 31))
/** In the sandbox: everybody may write there. */
const folder = "/tmp"

describe.skipIf(process.getuid?.() !== 0)("a supervisor that dies at a failpoint", () => {
  let build: FaultBuild
  let count = 0
  const home = new Home()

  beforeAll(async () => {
    build = await FaultBuild.make("supervisor")
  })
  afterAll(async () => {
    await home[Symbol.asyncDispose]()
    build[Symbol.dispose]()
  })

  it(
    `has each prompt answered once, or ended with its cause (${asked}, seed ${seed})`,
    { timeout: 1_800_000 },
    async () => {
      const quiet = await day(undefined)
      expect(quiet.wrong).toEqual([])
      const missed = namesOf("supervisor").filter((name) => !quiet.passed.includes(name))
      expect(missed).toEqual([])
      const wrong: string[] = []
      const strikes = strikesOf(quiet.passed)
      for (const strike of strikes) {
        const told = await day(strike)
        if (told.fired !== strike.name) told.wrong.push("it was not struck")
        if (told.wrong.length > 0) wrong.push(`${faultOf(strike)}: ${told.wrong.join("; ")}`)
      }
      console.log(`failpoints: ${strikes.length} deaths of a supervisor, seed ${seed}`)
      record("failpoints-supervisor", { cases: strikes.length, bad: wrong.length, seed })
      expect(wrong).toEqual([])
    },
  )

  /** What it passed, and where it died, as it has written down itself. */
  async function day(strike: Strike | undefined): Promise<{ wrong: string[]; passed: string[]; fired: string }> {
    const inside = { passed: [] as string[], fired: "" }
    const env = { FAULT_FOLDER: folder, ...(strike ? { FAULT: faultOf(strike) } : {}) }
    const look = async (talk: Talk, session: string): Promise<void> => {
      inside.passed = (await readOr(talk, session, `${folder}/passed`)).split("\n").filter(Boolean)
      inside.fired = await readOr(talk, session, `${folder}/fired`)
    }
    const chapter = agentChapter(`s${++count}`, { env, lossesMax: strike ? 1 : 0, look })
    const { wrong } = await new Trial({ home, programs: build.folder, remains: () => remains(home) }, chapter).run([])
    return { wrong: [...wrong], ...inside }
  }
})

function strikesOf(passed: readonly string[]): Strike[] {
  const all = passed.map((name, index) => ({
    name,
    pass: passed.slice(0, index + 1).filter((one) => one === name).length,
  }))
  if (asked === "all") return all
  const random = randomFrom(seed)
  return Array.from({ length: Number(asked) || 0 }, () => all.splice(Math.floor(random() * all.length), 1)).flat()
}

async function readOr(talk: Talk, session: string, path: string): Promise<string> {
  return talk.read(session, path).catch((failure: unknown) => {
    if (Fault.from(failure).code !== "not_found") throw failure
    return ""
  })
}
