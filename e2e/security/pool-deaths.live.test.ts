import { randomInt } from "node:crypto"
import { readFileSync } from "node:fs"
import { Scope } from "@warren/base/scope.ts"
import { busyboxTree, file } from "@warren/user-plane/images/testing/archives.ts"
import { writeTar } from "@warren/user-plane/images/tar/writer.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import { freeze, initPid } from "@warren/drivers/oci/testing/invariants.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Chance } from "../api/chance.ts"
import { Home } from "../runner/home.ts"
import { lastingLeaks, lookAt } from "../runner/machine.ts"
import { Runner } from "../runner/runner.ts"
import { record } from "./results.ts"

/** WARREN_CLAIMS=1000 for the long form; WARREN_SEED for the misfortunes of another run. */
const claims = Number(process.env["WARREN_CLAIMS"] ?? 16)
const seed = Number(process.env["WARREN_SEED"] ?? randomInt(2 ** 31))
const pool = { WARREN_POOL_LEAST: "4", WARREN_POOL_MB: "64" }
const quiet = { network: { mode: "none" } } as const
const images = ["old", "new"] as const
const atOnceMax = 4

type Fate = "killed" | "stopped" | "frozen"

/** What happens to one that waits. Over when it has happened. */
const fates: Readonly<Record<Fate, (root: string, sandbox: string) => Promise<void>>> = {
  killed: async (root, sandbox) => {
    const pid = initPid(root, sandbox)
    process.kill(pid, "SIGKILL")
    await expect.poll(() => stateOf(pid), { timeout: 60_000, interval: 1 }).toMatch(/[ZX]/)
  },
  stopped: async (root, sandbox) => {
    const pid = initPid(root, sandbox)
    process.kill(pid, "SIGSTOP")
    await expect.poll(() => stateOf(pid), { timeout: 60_000, interval: 1 }).toMatch(/[TZX]/)
  },
  frozen: (root, sandbox) => Promise.resolve(freeze(root, sandbox)),
}

function stateOf(pid: number): string {
  try {
    return /\) (.) /.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1] ?? "X"
  } catch {
    return "X"
  }
}

describe.skipIf(process.getuid?.() !== 0)("sandboxes that wait in the pool", () => {
  const scope = new Scope()
  const chance = new Chance(seed)
  const suffered: Record<Fate, number> = { killed: 0, stopped: 0, frozen: 0 }
  const tookMs: number[] = []
  const sources = { pool: 0, cold: 0 }
  let tagged: (typeof images)[number] = "old"
  let retagged = 0
  let home: Home
  let runner: Runner

  beforeAll(async () => {
    home = scope.use(new Home())
    runner = scope.use(await Runner.start(home, pool))
    for (const name of images) await bring(name)
    await runner.talk.call("image.tag", { from: tagged, to: "moving" })
  }, 120_000)
  afterAll(() => scope.close(), 120_000)

  /** A tree that knows its name. */
  async function bring(name: string): Promise<void> {
    await using sending = await runner.talk.open("image.import", { name, format: "rootfs" })
    await sending.write(writeTar(busyboxTree(file("etc/which", name))))
    sending.send({ op: "eof" })
    for (let item = await sending.next(); item !== undefined; item = await sending.next())
      if (!(item instanceof Chunk) && item.ids) return
  }

  /** Some of those that wait now, or none. */
  async function harm(): Promise<void> {
    for (const { id } of lookAt(home).ledger.filter(({ owner }) => owner === "pool" && chance.is(0.4))) {
      const fate = chance.one(Object.keys(fates) as Fate[])
      try {
        await fates[fate](home.driverRoot, id)
        suffered[fate]++
      } catch {
        // It was being made, or was given up a moment ago.
      }
    }
  }

  async function claim(image: "host" | "moving"): Promise<void> {
    const { talk } = runner
    const expected = image === "host" ? "alive\n" : tagged
    const begun = performance.now()
    const { id, acquireSource } = await talk.call("session.create", { ...quiet, image })
    const { text, exitCode } = await talk.run(id, image === "host" ? "echo alive" : "cat /etc/which")
    tookMs.push(performance.now() - begun)
    sources[acquireSource]++
    expect({ text, exitCode }).toEqual({ text: expected, exitCode: 0 })
    await talk.call("session.delete", { id })
  }

  it(
    `cost whoever is given one only time, dead, half-dead or of an old image (seed ${seed})`,
    { timeout: 120_000 + claims * 10_000 },
    async () => {
      const begun = performance.now()
      for (let done = 0; done < claims;) {
        if (chance.is(0.2)) {
          tagged = chance.one(images)
          await runner.talk.call("image.tag", { from: tagged, to: "moving" })
          retagged++
        }
        if (chance.is(0.5)) await harm()
        const count = Math.min(1 + chance.below(atOnceMax), claims - done)
        await Promise.all(Array.from({ length: count }, () => claim(chance.one(["host", "moving"]))))
        done += count
      }
      const sorted = tookMs.toSorted((a, b) => a - b)
      const at = (share: number): number => Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)
      record("pool-deaths", {
        ...{ cases: claims, seed, ...suffered, retagged, ofPool: sources.pool, cold: sources.cold },
        ...{ middleMs: at(0.5), mostMs: at(1), seconds: Math.round((performance.now() - begun) / 1_000) },
      })
      expect(await lastingLeaks(home)).toEqual([])
    },
  )
})
