import { once } from "node:events"
import { readFileSync } from "node:fs"
import { WebSocket } from "ws"
import { startControl } from "../control.ts"
import { defineMetric } from "../metric.ts"
import { Runner } from "../runner.ts"

const streams = 200
const sessions = 10
const bytesEach = 10_000_000
const sampleMs = 50

/** By how much the control plane grows at most while 200 commands each stream 10 MB through it at once. All of it arrives. */
export const metric = defineMetric({
  name: "http.streams-200",
  unit: "MB",
  goal: { p50Max: 64 },
  samples: { full: 3, quick: 1 },
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const { port, token, pid } = await startControl(context, runner)
    const urls: string[] = []
    for (let made = 0; made < sessions; made++) {
      const { id } = await runner.create({ network: { mode: "none" } })
      urls.push(`ws://127.0.0.1:${port}/v1/sessions/${id}/exec`)
    }
    const read = (count: number): Promise<void[]> =>
      Promise.all(Array.from({ length: count }, (_, n) => readAll(urls[n % sessions] ?? "", token)))
    // Once before, so that what is only needed once is not counted.
    await read(sessions)
    return { read, pid }
  },
  async run({ read, pid }) {
    const before = rssMb(pid)
    let most = before
    const sampling = setInterval(() => (most = Math.max(most, rssMb(pid))), sampleMs)
    await read(streams)
    clearInterval(sampling)
    return Math.max(most, rssMb(pid)) - before
  },
})

async function readAll(url: string, token: string): Promise<void> {
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` }, perMessageDeflate: false })
  let bytes = 0
  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) bytes += data.length - 1
  })
  const closed = once(socket, "close")
  await once(socket, "open")
  socket.send(JSON.stringify({ cmd: `head -c ${bytesEach} /dev/zero` }))
  await closed
  if (bytes !== bytesEach) throw new Error(`${bytes} of ${bytesEach} bytes came`)
}

function rssMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024
}
