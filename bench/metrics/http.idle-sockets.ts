import { once } from "node:events"
import { readFileSync } from "node:fs"
import { WebSocket } from "ws"
import { startControl } from "../control.ts"
import { defineMetric } from "../metric.ts"
import { Runner } from "../runner.ts"
import { inParallel } from "../sandboxes.ts"

const sockets = 1_000
const atOnce = 20
/** As many as a program lets attach, and programs enough in a sandbox that it is still far from its connections. */
const perProcess = 16
const processes = 16

/** What the control plane needs for each of a thousand WebSockets that are attached to a program which says nothing. */
export const metric = defineMetric({
  name: "http.idle-sockets",
  unit: "KB",
  goal: { p50Max: 20 },
  samples: { full: 3, quick: 1 },
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const { port, token, pid } = await startControl(context, runner)
    const urls: string[] = []
    for (let made = 0; made < sockets; made += perProcess * processes) {
      const { id } = await runner.create({ network: { mode: "none" } })
      for (let started = 0; started < processes; started++) {
        const sleeper = await runner.call("process.spawn", { session: id, argv: ["sleep", "100000"] })
        urls.push(`ws://127.0.0.1:${port}/v1/sessions/${id}/processes/${sleeper.pid}/attach`)
      }
    }
    return { urls, pid, headers: { authorization: `Bearer ${token}` } }
  },
  async run({ urls, pid, headers }) {
    // Once before, so that what is only needed once is not counted.
    for (const socket of await attach(urls, headers, atOnce)) await close(socket)
    const before = rssKb(pid)
    const open = await attach(urls, headers, sockets)
    const each = (rssKb(pid) - before) / sockets
    await Promise.all(open.map(close))
    return each
  },
})

async function attach(urls: readonly string[], headers: Record<string, string>, count: number): Promise<WebSocket[]> {
  const open: WebSocket[] = []
  await inParallel(atOnce, count, async (index) => {
    const socket = new WebSocket(urls[index % urls.length] ?? "", { headers, perMessageDeflate: false })
    await once(socket, "open")
    socket.send("{}")
    const [told] = (await once(socket, "message")) as [Buffer]
    if (!told.includes("attached")) throw new Error(`it was not attached: ${told.toString()}`)
    open.push(socket)
  })
  return open
}

async function close(socket: WebSocket): Promise<void> {
  if (socket.readyState === socket.CLOSED) return
  const closed = once(socket, "close")
  socket.terminate()
  await closed
}

function rssKb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0)
}
