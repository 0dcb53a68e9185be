import { randomInt } from "node:crypto"
import { randomFrom } from "@warren/drivers/oci/testing/random.ts"
import { afterAll, describe, expect, it } from "vitest"
import { Home } from "../runner/home.ts"
import { record } from "../security/results.ts"
import { DiskTrial, type DiskTold } from "./disk-trial.ts"
import { Mishap, type Failing } from "./mishap.ts"
import { sessionsChapter } from "./sessions-chapter.ts"

/**
 * The scripted day of a runner whose n-th write finds no room: that one, or that one and all that follow until somebody was told.
 * WARREN_WRITES: how many n are drawn from the seed; `all`: each until a day has none left; `20-60`: those.
 */
const asked = process.env["WARREN_WRITES"] ?? "6"
const isDrawn = /^\d+$/.test(asked)
const seed = Number(process.env["WARREN_SEED"] ?? randomInt(2 ** 31))
const hourMs = 3_600_000
/** After so many it is looked at what the next runner makes of what was left. */
const daysPerRunner = 16
const hows: readonly Failing[] = ["once", "on"]

interface Case {
  readonly n: number
  readonly how: Failing
}

const quiet: Case = { n: 0, how: "once" }

describe.skipIf(process.getuid?.() !== 0)("a runner that finds no room at a write", () => {
  const mishap = new Mishap()
  let home = new Home()
  let trial = new DiskTrial(home, mishap)
  let count = 0

  afterAll(async () => {
    await trial[Symbol.asyncDispose]()
    await home[Symbol.asyncDispose]()
    mishap[Symbol.dispose]()
  })

  const day = ({ n, how }: Case): Promise<DiskTold> => trial.day(sessionsChapter(`d${++count}`), n, how)

  it(`says so, loses nothing and goes on (${asked}, seed ${seed})`, { timeout: 2 * hourMs }, async () => {
    // The first is not like the others: the volume is made.
    expect((await day(quiet)).wrong).toEqual([])
    const before = mishap.writes
    expect((await day(quiet)).wrong).toEqual([])
    const most = mishap.writes - before
    const wrong: string[] = []
    const tally = { hits: 0, told: 0, restarts: 0 }
    for (const [index, one] of cases(most).entries()) {
      if (index % daysPerRunner === daysPerRunner - 1) wrong.push(...(await trial.leftovers()))
      const outcome = await day(one).catch((failure: unknown) => ({
        ...{ isHit: mishap.hits > 0, hit: mishap.hit, cut: undefined, restarted: undefined },
        ...{ wrong: [String(failure)], isBroken: true },
      }))
      mishap.heal()
      const where = `${one.n} ${one.how} (${outcome.hit})`
      if (outcome.isHit) tally.hits++
      if (outcome.cut !== undefined) tally.told++
      if (outcome.restarted !== undefined) tally.restarts++
      if (process.env["WARREN_WRITES"])
        process.stderr.write(
          `${where}: ${outcome.cut ?? "nobody was told"} LEFT ${outcome.restarted ?? ""} WRONG ${outcome.wrong.join("; ")}\n`,
        )
      if (outcome.wrong.length === 0) continue
      wrong.push(`${where}: ${outcome.cut ?? "nobody was told"}: ${outcome.wrong.join("; ")}`)
      if (!outcome.isBroken) continue
      await trial[Symbol.asyncDispose]()
      await home[Symbol.asyncDispose]()
      home = new Home()
      trial = new DiskTrial(home, mishap)
      await day(quiet)
    }
    wrong.push(...(await trial.leftovers()))
    console.log(`disk: ${most} writes in a day, ${JSON.stringify(tally)}, seed ${seed}`)
    record("disk-full-runner", { cases: tally.hits, bad: wrong.length, seed, ...tally })
    expect(wrong).toEqual([])
    expect(tally.hits).toBeGreaterThan(0)
  })

  it("while it starts, starts or says why it does not, and takes nothing away", { timeout: hourMs }, async () => {
    const { talk } = await trial.start()
    const { id } = await talk.call("session.create", { name: "lasting" })
    await talk.write(id, "/home/user/note", "kept")
    const before = mishap.writes
    await trial.stop()
    const begun = mishap.writes
    await trial.start()
    const most = mishap.writes - begun
    expect(begun).toBeGreaterThan(before)
    const told = { started: 0, refused: 0 }
    for (const { n, how } of isDrawn ? cases(most).slice(0, 2) : cases(most)) {
      const words = await trial.startStruck(n, how)
      if (words !== undefined) expect(words, `${n} ${how} (${mishap.hit})`).toMatch(/Fault: [^]*hint: |ENOSPC/)
      told[words === undefined ? "started" : "refused"]++
      const next = await trial.start()
      expect(await next.talk.read(id, "/home/user/note"), `${n} ${how} (${mishap.hit})`).toBe("kept")
    }
    console.log(`disk: ${most} writes at a start, ${JSON.stringify(told)}`)
    record("disk-full-start", { cases: told.started + told.refused, ...told })
    await (await trial.start()).talk.call("session.delete", { id })
    expect(await trial.leftovers()).toEqual([])
  })
})

function cases(most: number): Case[] {
  const [from, to] = asked.split("-").map(Number)
  const all = hows.flatMap((how) => Array.from({ length: most }, (_, index) => ({ n: index + 1, how })))
  if (asked === "all") return all
  if (to !== undefined) return all.filter(({ n }) => n >= (from ?? 1) && n <= to)
  const random = randomFrom(seed)
  const drawn = Array.from({ length: Number(asked) }, () => all.splice(Math.floor(random() * all.length), 1)).flat()
  // What a disk that stays full leaves is the next runner's: those days come last.
  return drawn.toSorted((a, b) => hows.indexOf(a.how) - hows.indexOf(b.how))
}
