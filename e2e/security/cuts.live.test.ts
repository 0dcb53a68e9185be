import { randomInt } from "node:crypto"
import { setTimeout as pause } from "node:timers/promises"
import { Http } from "@warren/sdk/http.ts"
import { Session } from "@warren/sdk/session.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Chance } from "../api/chance.ts"
import { ApiSystem } from "../api/system.ts"
import { Crowd } from "./cuts/crowd.ts"
import { answerTo } from "./cuts/talkers.ts"
import { shown, ToxicLine } from "./cuts/toxic-line.ts"
import { record } from "./results.ts"

/** Cuts of WebSockets; those of other connections come on top. `WARREN_CUTS=10000 WARREN_SEED=7` for who wants to be sure. */
const cuts = Number(process.env["WARREN_CUTS"] ?? 50)
/** Or for how long, where that is less. */
const minutes = Number(process.env["WARREN_CUTS_MINUTES"] ?? Infinity)
const seed = Number(process.env["WARREN_SEED"] ?? randomInt(2 ** 31))
const lookMs = 25
const tellEvery = 500

/** Everybody who can come back does, over a line that is cut all the time, at any byte. */
describe.skipIf(process.getuid?.() !== 0)("a line that is cut", { timeout: 120_000 + cuts * 2_000 }, () => {
  const chance = new Chance(seed)
  const enough = new AbortController()
  let system: ApiSystem
  let line: ToxicLine
  let session: Session
  let crowd: Crowd
  /** On a line that is never cut. */
  let direct: Http

  beforeAll(async () => {
    line = await ToxicLine.open(chance)
    system = await ApiSystem.start({ WARREN_PUBLIC_URL: line.url })
    const { token, url, warren } = system
    line.leadTo(system.port)
    direct = new Http({ url, token, fetch })
    session = (await warren.sessions.create({ network: { mode: "none" }, name: "cut" })).keep()
    const http = new Http({ url: line.url, token, fetch })
    const cut = new Session(http, session.info, true)
    const ground = { url: line.url, token, warren, http, session: cut, enough: enough.signal }
    crowd = await Crowd.gather({ ground, direct, session }, chance)
  }, 120_000)
  afterAll(async () => {
    for (const onlooker of crowd?.onlookers ?? []) await onlooker[Symbol.asyncDispose]()
    await line?.[Symbol.asyncDispose]()
    await session?.delete()
    await system?.[Symbol.asyncDispose]()
  }, 120_000)

  test(`${cuts} times, in a turn, a frame, a paste: all comes once and in order, or who sent it is told (seed ${seed})`, async () => {
    const begun = performance.now()
    await cutOften()
    line.heal()
    enough.abort()
    expect(crowd.failures).toEqual([])
    await crowd.finish()
    expect(crowd.failures).toEqual([])

    const { followers, listeners, typists, onlookers, prompter } = crowd
    const [one, other] = followers
    expect([one.resyncs, other.resyncs]).toEqual([0, 0])
    expect(one.told).toEqual(other.told)
    const answered = prompter.prompted.map((id) => [id, answerTo(id)] as const)
    for (const { answers } of listeners) expect([...answers]).toEqual(answered)
    expect(await conversation()).toEqual(answered.flatMap(([id, text]) => [[id], [id, text]]))
    for (const [n, typist] of typists.entries())
      await expect.poll(() => onlookers[n]?.shown === typist.shown, { timeout: 30_000 }).toBe(true)
    const short = typists.reduce((sum, typist) => sum + typist.cutShort(), 0)
    const pastes = typists.flatMap((typist) => typist.pastes)
    const doubtful = pastes.filter(({ isDoubtful }) => isDoubtful).length
    const seconds = Math.round((performance.now() - begun) / 1_000)
    console.log(
      `cuts: ${shown(line.cuts)}, seed ${seed}, in ${seconds} s; ${crowd.clients.length} clients came back ${crowd.returns} times; ` +
        `${answered.length} turns, ${pastes.length} pastes, ${doubtful} of them cut and ${short} not wholly there`,
    )
    expect(line.cuts.insideFrames).toBeGreaterThan(0)
    expect(system.said.match(/^.*"event":"[a-z]+\.bug".*$/gm) ?? []).toEqual([])
    const { sockets, all, insideFrames } = line.cuts
    record("cuts-websocket", {
      ...{
        cases: sockets,
        seed,
        otherConnections: all - sockets,
        insideFrames,
        clients: crowd.clients.length,
        seconds,
      },
      ...{ turns: answered.length, pastes: pastes.length, pastesCut: doubtful, pastesCutShort: short },
    })
  })

  async function cutOften(): Promise<void> {
    const end = performance.now() + minutes * 60_000
    const isEnough = (): boolean => line.cuts.sockets >= cuts || performance.now() > end
    for (let told = tellEvery; !isEnough() && crowd.failures.length === 0;) {
      // Something has to happen for those who follow.
      await session.update({ labels: { at: String(Date.now()) } })
      await pause(lookMs)
      if (line.cuts.sockets < told) continue
      told += tellEvery
      console.log(`cuts: ${shown(line.cuts)}`)
    }
  }

  /** What the agent's chat came to: of each message whose prompt it is, and what was answered. */
  async function conversation(): Promise<string[][]> {
    const { items: chats } = await direct.call("GET /v1/chats", { sessionId: session.id })
    const all: string[][] = []
    for (let after = 0, hasMore = true; hasMore;) {
      const page = await direct.call("GET /v1/chats/{id}/messages", { id: chats[0]?.id ?? "", after, limit: 200 })
      for (const { id, seq, role, promptId = "", parts } of page.items) {
        after = seq
        const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("")
        all.push(role === "user" ? [id] : [promptId, text])
      }
      hasMore = page.hasMore
    }
    return all
  }
})
