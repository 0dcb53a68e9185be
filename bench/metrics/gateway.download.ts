import { spawn, type ChildProcess } from "node:child_process"
import { generateKeyPairSync } from "node:crypto"
import { once } from "node:events"
import { mkdir, writeFile } from "node:fs/promises"
import { userInfo } from "node:os"
import { dirname } from "node:path"
import { createInterface } from "node:readline"
import { signGatewayToken } from "@warren/protocol/gateway-token.ts"
import { controlKeyOf, gatewaySocketOf } from "@warren/protocol/places.ts"
import { defineMetric } from "../metric.ts"
import { Runner } from "../runner.ts"

const bytes = 1024 * 1024 * 1024
const perSecond = (ms: number): number => bytes / 1_000_000 / (ms / 1_000)
const port = 8000
const megabytes = 512

/** Answers whatever is asked with that many bytes, and says on which port. */
const source = (at: number): string => `
  const chunk = Buffer.alloc(256 * 1024, "x")
  const server = require("node:http").createServer((request, response) => {
    response.writeHead(200, { "content-length": ${bytes} })
    let sent = 0
    const more = () => {
      while (sent < ${bytes}) {
        sent += chunk.length
        if (!response.write(chunk)) return response.once("drain", more)
      }
      response.end()
    }
    more()
  })
  server.listen(${at}, "127.0.0.1", () => console.log(server.address().port))
  process.stdin.on("error", () => undefined).resume()`

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
 * 1 GiB over HTTP from a program in a session to one outside, through the gateway; against the same two programs on the machine's
 * loopback. Four processes share the machine's cores in one case, two in the other.
 */
export const metric = defineMetric({
  name: "gateway.download",
  unit: "MB/s",
  isHigherBetter: true,
  goal: { ratioMin: 0.3 },
  samples: { full: 10, quick: 2 },
  async prepare(context) {
    const start = (script: string): ChildProcess => {
      const child = spawn(process.execPath, ["-e", script], { stdio: ["pipe", "pipe", "inherit"] })
      context.scope.defer(() => end(child))
      return child
    }
    const direct = Number(await lineOf(start(source(0))))
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const limits = { cpus: 2, memoryBytes: megabytes * 1024 * 1024 }
    const { id } = await runner.create({ network: { mode: "none" }, limits })
    await runner.call("process.spawn", { session: id, argv: ["node", "-e", source(port)] })
    await runner.exec(id, `until bash -c '< /dev/tcp/127.0.0.1/${port}' 2>/dev/null; do sleep 0.02; done`)
    return { child: start(reader), direct, id, home: runner.home, key: await controlKey(runner.home) }
  },
  run({ child, id, home, key }) {
    const token = signGatewayToken(key, { user: userInfo().username, session: id, lifeS: 600, now: Date.now() })
    const lines = ["Host: localhost", `Authorization: Bearer ${token}`, "Connection: close"]
    const say = `GET /s/${id}/t/${port}/ HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`
    return take(child, { to: { path: gatewaySocketOf(home) }, say })
  },
  baseline: {
    name: "directly",
    run: ({ child, direct }) =>
      take(child, {
        to: { host: "127.0.0.1", port: direct },
        say: "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
      }),
  },
})

/** Stands in for the control plane's. */
async function controlKey(home: string) {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  await mkdir(dirname(controlKeyOf(home)), { recursive: true })
  await writeFile(controlKeyOf(home), publicKey.export({ type: "spki", format: "pem" }))
  return privateKey
}

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
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, "exit")
  child.kill("SIGTERM")
  await gone
}
