import { readFileSync } from "node:fs"
import { defineMetric } from "../metric.ts"
import { Runner } from "../runner.ts"
import { inParallel } from "../sandboxes.ts"

const sessions = 50
const perSecond = 200
const seconds = 5
const atOnce = 4

/** A timer for each of 10,000 things a second would be most of what is measured: 86 µs each in a bare Node. */
const atATime = 4
/** Says what time it is, so often a second, for so long. */
const steps = [{ times: perSecond * seconds, everyMs: (1000 * atATime) / perSecond, atOnce: atATime }]
const ticking = `[[script:${JSON.stringify({ steps })}]]`

/** Fifty scripted agents that each say 200 things a second: how long until a reader of their feed has one, for the slowest but one in a hundred. */
export const metric = defineMetric({
  name: "hub.fifty",
  unit: "ms",
  goal: { p50Max: 50 },
  samples: { full: 5, quick: 1 },
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const ids: string[] = []
    await inParallel(atOnce, sessions, async () => {
      const { id } = await runner.create({ network: { mode: "none" } })
      await runner.call("agent.start", { session: id, spec: { adapter: "scripted" } })
      ids.push(id)
    })
    // Once before, so that fifty new processes learn to be fast on nobody's time.
    await Promise.all(ids.map((id) => heard(runner, id, [])))
    return { runner, ids, before: rssMb(runner.pid) }
  },
  async run({ runner, ids, before }) {
    const late: number[] = []
    const cpuBefore = cpuMs(runner.pid)
    await Promise.all(ids.map((id) => heard(runner, id, late)))
    late.sort((a, b) => a - b)
    const cpu = ((cpuMs(runner.pid) - cpuBefore) / (seconds * 1000)).toFixed(2)
    const grown = (rssMb(runner.pid) - before).toFixed(0)
    console.error(`  hub.fifty: ${late.length} pieces heard, runner at ${cpu} of a processor, grown by ${grown} MB`)
    return late[Math.ceil(late.length * 0.99) - 1] ?? Number.NaN
  },
})

async function heard(runner: Runner, id: string, late: number[]): Promise<void> {
  const { feedSeq } = await runner.call("agent.get", { session: id })
  const { messageId } = await runner.call("agent.prompt", { session: id, text: ticking })
  for await (const { item } of runner.feed("session.feed", { id, after: feedSeq })) {
    if (item.type === "message.part.text-delta")
      for (const line of item.delta.split("\n")) if (line.length === 13) late.push(Date.now() - Number(line))
    if (item.type === "prompt" && item.prompt.messageId === messageId && item.prompt.state === "done") return
  }
}

function rssMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024
}

function cpuMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6
}
