import { readdirSync, readFileSync } from "node:fs"
import { randomFrom } from "@warren/drivers/oci/testing/random.ts"
import { afterAll, describe, expect, it } from "vitest"
import { Home } from "./home.ts"
import { lastingLeaks, lookAt } from "./machine.ts"
import { Runner } from "./runner.ts"
import type { Talk } from "./talk.ts"

const minutes = Number(process.env["WARREN_SOAK_MIN"] ?? 1.1)
const workers = 3
/** The first part is for what is made once: code that is compiled, statements, shelves of the pool. */
const warmShare = 0.3
/** Between the median of the first window after that and of the last. */
const tolerance = { rssShare: 0.15, rssBytes: 16 * 1024 * 1024, descriptors: 6 }
const sampleMs = 500
const pool = { WARREN_POOL_LEAST: "2", WARREN_POOL_MB: "8" }

interface Sample {
  readonly rssBytes: number
  readonly descriptors: number
}

describe.skipIf(process.getuid?.() !== 0)("a runner that works for a long time", () => {
  const home = new Home()
  afterAll(() => home[Symbol.asyncDispose]())

  it(`stays as large as it was (${minutes} minutes)`, { timeout: minutes * 60_000 + 120_000 }, async () => {
    await using runner = await Runner.start(home, pool)
    const { talk } = runner
    const end = performance.now() + minutes * 60_000
    const random = randomFrom(1)
    const samples: Sample[] = []
    const sampling = setInterval(() => samples.push(sampleOf(runner.pid)), sampleMs)
    const counts = await Promise.all(
      Array.from({ length: workers }, (_, n) => work(talk, n, () => performance.now() < end, random)),
    )
    clearInterval(sampling)
    const rounds = counts.reduce((sum, count) => sum + count, 0)
    const [first, last] = windows(samples.slice(Math.floor(samples.length * warmShare)))
    const mb = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1)
    console.log(
      `soak: ${minutes} minutes, ${rounds} rounds; resident ${mb(first.rssBytes)} then ${mb(last.rssBytes)} MiB, descriptors ${first.descriptors} then ${last.descriptors}`,
    )
    expect(rounds).toBeGreaterThan(workers)
    expect(last.rssBytes).toBeLessThan(first.rssBytes * (1 + tolerance.rssShare) + tolerance.rssBytes)
    expect(last.descriptors).toBeLessThanOrEqual(first.descriptors + tolerance.descriptors)
    expect(await talk.sessions()).toEqual([])
    expect(await lastingLeaks(home)).toEqual([])
    await runner.stop()
    await using empty = await Runner.start(home)
    await expect
      .poll(() => lookAt(home), { timeout: 20_000 })
      .toMatchObject({ ledger: [], folders: [], groups: [], egress: [] })
    await empty.stop()
  })
})

/** A session's life, again and again; how often. */
async function work(talk: Talk, worker: number, goesOn: () => boolean, random: () => number): Promise<number> {
  let rounds = 0
  for (; goesOn(); rounds++) {
    const rare = random() < 0.3 ? { limits: { pidsMax: 300 }, network: { mode: "none" as const } } : {}
    const { id } = await talk.call("session.create", {
      name: `w${worker}-${rounds}`,
      labels: { worker: String(worker) },
      ...rare,
    })
    const text = `round ${rounds} `.repeat(1 + Math.floor(random() * 5_000))
    await talk.write(id, "/home/user/note", text)
    await talk.run(id, "cat ~/note | wc -c; seq 2000")
    const { sessions } = await talk.call("session.fork", { id, count: 1 + Math.floor(random() * 2) })
    if (random() < 0.5) await talk.call("session.hibernate", { id })
    else await talk.call("session.pause", { id })
    expect(await talk.read(id, "/home/user/note")).toBe(text)
    for (const fork of sessions) {
      expect(await talk.read(fork.id, "/home/user/note")).toBe(text)
      await talk.call("session.delete", { id: fork.id })
    }
    await talk.call("session.delete", { id })
  }
  return rounds
}

function sampleOf(pid: number): Sample {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  const rssBytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024
  return { rssBytes, descriptors: readdirSync(`/proc/${pid}/fd`).length }
}

/** The medians of the first and of the last third. */
function windows(samples: readonly Sample[]): [Sample, Sample] {
  const third = Math.max(1, Math.floor(samples.length / 3))
  return [middle(samples.slice(0, third)), middle(samples.slice(-third))]
}

function middle(samples: readonly Sample[]): Sample {
  const median = (numbers: number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0
  return {
    rssBytes: median(samples.map(({ rssBytes }) => rssBytes)),
    descriptors: median(samples.map(({ descriptors }) => descriptors)),
  }
}
