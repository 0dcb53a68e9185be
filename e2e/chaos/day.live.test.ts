import { randomInt } from "node:crypto"
import { randomFrom } from "@warren/drivers/oci/testing/random.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Home } from "../runner/home.ts"
import { record } from "../security/results.ts"
import { agentChapter } from "./agent-chapter.ts"
import { drawn, everything, recovery, wordsOf, type Case } from "./cases.ts"
import { confinedChapter } from "./confined-chapter.ts"
import { ConfinedHome } from "./confined-home.ts"
import { FaultBuild } from "./fault-build.ts"
import { goodsChapter } from "./goods-chapter.ts"
import { namesOf } from "./names.ts"
import { remains } from "./remains.ts"
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
const readyMsMax = 60_000
const hourMs = 3_600_000

const chapters: Readonly<Record<"sessions" | "goods" | "agent" | "confined", (p: string) => Chapter>> = {
  sessions: sessionsChapter,
  goods: goodsChapter,
  agent: (p) => agentChapter(p, { env: {}, lossesMax: 0 }),
  confined: confinedChapter,
}

type Name = keyof typeof chapters
const wanted = (process.env["WARREN_CHAPTER"]?.split(",") ?? Object.keys(chapters)) as Name[]

const isAsked = ({ strikes: [first] }: Case): boolean =>
  asked === "all" || asked.split(",").some((beginning) => first?.name.startsWith(beginning) ?? false)

describe.skipIf(process.getuid?.() !== 0)("a runner that dies at a failpoint", () => {
  let build: FaultBuild
  let home = new Home()
  let confined = new ConfinedHome()
  let count = 0

  beforeAll(async () => {
    build = await FaultBuild.make("runner", "supervisor")
  })
  afterAll(async () => {
    await home[Symbol.asyncDispose]()
    await confined[Symbol.asyncDispose]()
    build[Symbol.dispose]()
  })

  const run = (name: Name, strikes: readonly Strike[]): Promise<Told> => {
    const programs = build.folder
    const place =
      name === "confined"
        ? { home: confined, programs, env: { WARREN_DRIVER: "process" }, remains: () => confined.remains() }
        : { home, programs, remains: () => remains(home) }
    return new Trial(place, chapters[name](`t${++count}`)).run(strikes)
  }

  /** Nothing of what went wrong is in the way of what comes. */
  const renew = async (): Promise<void> => {
    await home[Symbol.asyncDispose]()
    await confined[Symbol.asyncDispose]()
    home = new Home()
    confined = new ConfinedHome()
  }

  it(
    `loses nothing, doubles nothing and leaves nothing (${asked}, seed ${seed})`,
    { timeout: 2 * hourMs },
    async () => {
      const passes = await countPasses()
      const cases = isDrawn ? drawn(passes, Number(asked), randomFrom(seed)) : everything(passes).filter(isAsked)
      const wrong: string[] = []
      const readyMs = new Map(wanted.map((name) => [name, [] as number[]]))
      /** Of runners that had nothing to bring into order: what this machine takes at this moment. */
      const startMs: number[] = []
      const recovering = new Set<string | undefined>()
      let struck = 0
      for (const { chapter, strikes } of cases) {
        const told = await run(chapter as Name, strikes).catch((failure: unknown) => ({
          ...{ struck: 0, cut: undefined, readyMs: [], passed: [] },
          wrong: [String(failure)],
        }))
        struck += told.struck
        if (told.struck === 2) recovering.add(strikes[1]?.name)
        startMs.push(...told.readyMs.slice(0, 1))
        readyMs.get(chapter as Name)?.push(...told.readyMs.slice(1))
        const where = `${chapter}: ${wordsOf(strikes)} (${told.cut ?? "not cut"}): ${told.wrong.join("; ")}`
        if (!isDrawn) process.stderr.write(`${where} [${told.readyMs.map(Math.round).join(", ")} ms]\n`)
        if (told.wrong.length === 0) continue
        wrong.push(where)
        await renew()
      }
      for (const [name, times] of readyMs) {
        const own = cases.filter(({ chapter }) => chapter === name).length
        console.log(
          `failpoints: ${name}: ${own} cases; ready again after ${medianOf(times)} ms, ${slowestOf(times)} ms`,
        )
      }
      const all = [...readyMs.values()].flat()
      const times = { startMsMedian: medianOf(startMs), readyMsMedian: medianOf(all), readyMsMax: slowestOf(all) }
      console.log(`failpoints: ${cases.length} cases, ${struck} strikes, seed ${seed}: ${JSON.stringify(times)}`)
      record("failpoints-runner", { cases: struck, bad: wrong.length, seed, ...times })
      expect(wrong).toEqual([])
      expect(struck).toBeGreaterThan(0)
      const isWhole = asked === "all" && wanted.includes("sessions")
      expect(isWhole ? recovery.filter((name) => !recovering.has(name)) : []).toEqual([])
      expect(slowestOf(all)).toBeLessThan(readyMsMax)
    },
  )

  /** How often each is passed in a day that nothing happens to; each of a chapter's own is, or nobody would strike it. */
  async function countPasses(): Promise<Map<Name, Map<string, number>>> {
    const found = new Map<Name, Map<string, number>>()
    for (const chapter of wanted) {
      const { wrong, passed } = await run(chapter, [])
      expect(wrong, chapter).toEqual([])
      const counts = new Map<string, number>()
      for (const name of passed) counts.set(name, (counts.get(name) ?? 0) + 1)
      const missed = namesOf(chapter).filter((name) => !counts.has(name) && !recovery.includes(name))
      expect(missed, `never passed in ${chapter}`).toEqual([])
      found.set(chapter, counts)
    }
    return found
  }
})

function medianOf(times: readonly number[]): number {
  return Math.round(times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0)
}

function slowestOf(times: readonly number[]): number {
  return Math.round(Math.max(0, ...times))
}
