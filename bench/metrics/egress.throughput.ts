import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { EgressProxy } from "@warren/user-plane/egress/proxy.ts"
import { defineMetric } from "../metric.ts"

const bytes = 256 * 1024 * 1024
const perSecond = (ms: number): number => bytes / 1_000_000 / (ms / 1_000)

/** Sends that many bytes to whoever connects, and says on which port. */
const source = `
  const chunk = Buffer.alloc(256 * 1024, "x")
  const server = require("node:net").createServer(async (socket) => {
    socket.on("error", () => socket.destroy())
    for (let sent = 0; sent < ${bytes}; sent += chunk.length)
      if (!socket.write(chunk)) await require("node:events").once(socket, "drain")
    socket.end()
  })
  server.listen(0, "127.0.0.1", () => console.log(server.address().port))
  process.stdin.resume().on("end", () => process.exit())`

/** For each line, where to connect and what to say first, reads all bytes and says how many milliseconds that took. */
const reader = `
  const net = require("node:net")
  const buffer = Buffer.alloc(1024 * 1024)
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { to, say } = JSON.parse(line)
    const started = performance.now()
    let read = 0
    const onread = { buffer, callback: (size) => { read += size; return true } }
    const socket = net.connect({ ...to, onread }, () => socket.write(say))
    socket.on("close", () => console.log(read < ${bytes} ? "short" : performance.now() - started))
  }).on("close", () => process.exit())`

/**
 * 256 MiB from a program on loopback to another, through a tunnel of the egress proxy in this process; against the same two
 * programs connected directly. Three processes share the machine's cores in one case, two in the other.
 */
export const metric = defineMetric({
  name: "egress.throughput",
  unit: "MB/s",
  isHigherBetter: true,
  goal: { ratioMin: 0.5 },
  samples: { full: 40, quick: 6 },
  async prepare(context) {
    const start = (script: string): ChildProcess => {
      const child = spawn(process.execPath, ["-e", script], { stdio: ["pipe", "pipe", "inherit"] })
      context.scope.defer(() => end(child))
      return child
    }
    const port = Number(await lineOf(start(source)))
    const path = join(context.folder, "egress.sock")
    const address = `127.0.0.1:${port}`
    const policy = { mode: "list" as const, allow: [`tcp://${address}`], allowPrivate: [address] }
    context.scope.use(await EgressProxy.listen({ path, policy }))
    return { child: start(reader), port, path }
  },
  run: ({ child, port, path }) =>
    take(child, { to: { path }, say: `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n` }),
  baseline: { name: "directly", run: ({ child, port }) => take(child, { to: { host: "127.0.0.1", port }, say: "" }) },
})

async function take(child: ChildProcess, order: object): Promise<number> {
  child.stdin?.write(`${JSON.stringify(order)}\n`)
  const ms = Number(await lineOf(child))
  if (Number.isNaN(ms)) throw new Error("not all bytes came")
  return perSecond(ms)
}

async function lineOf(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error("it has no output")
  const lines = createInterface({ input: child.stdout })
  const [line] = (await once(lines, "line")) as [string]
  lines.close()
  return line
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const gone = once(child, "exit")
  child.stdin?.end()
  await gone
}
