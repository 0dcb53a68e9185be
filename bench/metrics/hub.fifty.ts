import { readFileSync } from "node:fs"
import { defineMetric } from "../metric.ts"
import { Runner } from "../runner.ts"
import { inParallel } from "../sandboxes.ts"

const sessions = 50
const perSecond = 200
const seconds = 5
const atOnce = 4

/** Says what time it is, so often a second, for so long. */
const ticking = `
let left = ${perSecond * seconds}
const timer = setInterval(() => {
  process.stdout.write(Date.now() + "\\n")
  if (--left === 0) clearInterval(timer)
}, ${1000 / perSecond})`

/** Fifty agents that each say 200 things a second: how long until a reader of their feed has one, for the slowest but one in a hundred. */
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
      const spec = { adapter: "command" as const, cmd: "node", args: ["-e", ticking] }
      await runner.call("agent.start", { session: id, spec })
      ids.push(id)
    })
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
  const { messageId } = await runner.call("agent.prompt", { session: id, text: "go" })
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
