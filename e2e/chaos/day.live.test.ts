import { randomInt } from "node:crypto"
import { randomFrom } from "@warren/drivers/oci/testing/random.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Home } from "../runner/home.ts"
import { record } from "../security/results.ts"
import { agentChapter } from "./agent-chapter.ts"
import { FaultBuild } from "./fault-build.ts"
import { goodsChapter } from "./goods-chapter.ts"
import { sessionsChapter } from "./sessions-chapter.ts"
import type { Chapter } from "./story.ts"
import { Trial, type Strike, type Told } from "./trial.ts"

/**
 * The scripted day of a runner, dying at its failpoints. WARREN_FAILPOINTS: how many strikes are drawn from the seed, or `all`: every
 * name at its first and its last pass, as an error, and with another death while the next runner recovers (half an hour); or how the names
 * begin that are struck so: `agent/,prompt/`. WARREN_CHAPTER: in which chapters.
 */
const asked = process.env["WARREN_FAILPOINTS"] ?? "4"
const isDrawn = /^\d+$/.test(asked)
const seed = Number(process.env["WARREN_SEED"] ?? randomInt(2 ** 31))
/** Within this a runner answers again, on a machine that does much else. What it took is told. */
const readyMsMax = 20_000
const hourMs = 3_600_000

type Make = (p: string) => Chapter
const chapters: Readonly<Record<string, Make>> = {
  sessions: sessionsChapter,
  goods: goodsChapter,
  agent: (p) => agentChapter(p, { env: {}, lossesMax: 0 }),
}

const wanted = process.env["WARREN_CHAPTER"]?.split(",") ?? Object.keys(chapters)

/** Passed by the next runner while it brings into order what the last one left. */
const recovery: readonly Strike[] = [
  "boot/adopted",
  "boot/settled",
  "boot/swept",
  "boot/removed",
  "driver/adopting",
].map((name) => ({ name, pass: 1 }))
/** What follows in the same breath cannot fail, so that nothing is there to take it back. */
const cannotFail = new Set(["session/admitted", "session/made", "session/taken", "session/asleep", "session/stopped"])

const isAsked = ({ strikes: [first] }: Case): boolean =>
  asked === "all" || asked.split(",").some((beginning) => first?.name.startsWith(beginning) ?? false)

interface Case {
  readonly chapter: string
  readonly strikes: readonly Strike[]
}

describe.skipIf(process.getuid?.() !== 0)("a runner that dies at a failpoint", () => {
  let build: FaultBuild
  let home = new Home()
  let count = 0

  beforeAll(async () => {
    build = await FaultBuild.make("runner", "supervisor")
  })
  afterAll(async () => {
    await home[Symbol.asyncDispose]()
    build[Symbol.dispose]()
  })

  const run = (chapter: string, strikes: readonly Strike[]): Promise<Told> => {
    const make = chapters[chapter] as Make
    return new Trial(home, build.folder, make(`t${++count}`)).run(strikes)
  }

  it(
    `loses nothing, doubles nothing and leaves nothing (${asked}, seed ${seed})`,
    { timeout: 2 * hourMs },
    async () => {
      const passes = await countPasses()
      const cases = isDrawn ? drawn(passes, Number(asked), randomFrom(seed)) : everything(passes).filter(isAsked)
      const [wrong, readyMs]: [string[], number[]] = [[], []]
      let struck = 0
      for (const { chapter, strikes } of cases) {
        const where = `${chapter}: ${strikes.map(({ name, pass, deed = "" }) => `${name}:${pass}${deed && `:${deed}`}`).join(", then ")}`
        const told = await run(chapter, strikes).catch((failure: unknown) => ({
          ...{ struck: 0, cut: undefined, readyMs: [], passed: [] },
          wrong: [String(failure)],
        }))
        struck += told.struck
        readyMs.push(...told.readyMs.slice(1))
        if (asked === "all")
          process.stderr.write(`${where}: ${told.cut ?? "not cut"} ${told.struck} ${told.wrong.join("; ")}`)
        if (told.wrong.length === 0) continue
        wrong.push(`${where} (${told.cut ?? "not cut"}): ${told.wrong.join("; ")}`)
        await home[Symbol.asyncDispose]()
        home = new Home()
      }
      const slowest = Math.round(Math.max(0, ...readyMs))
      const median = Math.round(readyMs.toSorted((a, b) => a - b)[readyMs.length >> 1] ?? 0)
      console.log(
        `failpoints: ${cases.length} cases, ${struck} strikes, seed ${seed}; ready again after ${median} ms (median), ${slowest} ms (slowest)`,
      )
      record("failpoints-runner", {
        cases: struck,
        bad: wrong.length,
        seed,
        readyMsMedian: median,
        readyMsMax: slowest,
      })
      expect(wrong).toEqual([])
      expect(struck).toBeGreaterThan(0)
      expect(slowest).toBeLessThan(readyMsMax)
    },
  )

  /** How often each is passed in a day that nothing happens to. */
  async function countPasses(): Promise<Map<string, Map<string, number>>> {
    const found = new Map<string, Map<string, number>>()
    for (const chapter of wanted) {
      const { wrong, passed } = await run(chapter, [])
      expect(wrong, chapter).toEqual([])
      const counts = new Map<string, number>()
      for (const name of passed) counts.set(name, (counts.get(name) ?? 0) + 1)
      found.set(chapter, counts)
    }
    return found
  }
})

/** Each name in the first chapter that comes by it. */
function everything(passes: ReadonlyMap<string, ReadonlyMap<string, number>>): Case[] {
  const cases: Case[] = []
  const seen = new Set<string>()
  for (const [chapter, counts] of passes) {
    for (const [name, most] of counts) {
      if (seen.has(name)) continue
      seen.add(name)
      for (const pass of new Set([1, most])) cases.push({ chapter, strikes: [{ name, pass }] })
      const again = recovery[seen.size % recovery.length] as Strike
      cases.push({ chapter, strikes: [{ name, pass: 1 }, again] })
      const canFail = !name.startsWith("boot/") && !cannotFail.has(name)
      if (canFail) cases.push({ chapter, strikes: [{ name, pass: 1, deed: "error" }] })
    }
  }
  return cases
}

function drawn(
  passes: ReadonlyMap<string, ReadonlyMap<string, number>>,
  howMany: number,
  random: () => number,
): Case[] {
  // Deaths: steps that fail are struck with the whole, where some are known to leave a session as `failed` or `stopping` until the next start.
  const all = everything(passes).filter(({ strikes }) => strikes.every(({ deed }) => deed === undefined))
  return Array.from({ length: howMany }, () => all.splice(Math.floor(random() * all.length), 1)).flat()
}
