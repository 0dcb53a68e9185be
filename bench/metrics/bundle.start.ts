import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { connectUnix } from "@warren/base/unix-socket.ts"
import { rpcSocketOf } from "@warren/protocol/places.ts"
import { RpcClient } from "@warren/protocol/rpc/client.ts"
import { healthContract } from "../health.ts"
import { defineMetric, elapsedMs } from "../metric.ts"

const program = "dist/runner.js"
const readyMs = 20_000

/** From nothing to a runner that answers, in an empty home; against Node starting and ending with nothing to do. */
export const metric = defineMetric({
  name: "bundle.start",
  unit: "ms",
  samples: { full: 40, quick: 5 },
  prepare(context) {
    if (!existsSync(program)) context.skip(`${program} is not there: npm run build`)
    return Promise.resolve({ folder: context.folder })
  },
  async run({ folder }) {
    const home = await mkdtemp(join(folder, "home-"))
    let child: ChildProcess | undefined
    try {
      return await elapsedMs(async () => {
        child = spawn(process.execPath, [program], { stdio: "ignore", env: { ...process.env, WARREN_HOME: home } })
        await answers(rpcSocketOf(home), child)
      })
    } finally {
      if (child) await end(child)
      await rm(home, { recursive: true, force: true })
    }
  },
  baseline: {
    name: "node -e 0",
    run: () => elapsedMs(() => once(spawn(process.execPath, ["-e", "0"], { stdio: "ignore" }), "exit")),
  },
})

/** Knocks every millisecond: a runner tells nobody that it is up, and a knock costs a tenth of that. */
async function answers(socket: string, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + readyMs
  for (;;) {
    const connection = await connectUnix(socket).catch(() => undefined)
    if (connection) {
      await using client = new RpcClient(connection, healthContract, "bench")
      await client.call("health.check", {})
      return
    }
    if (child.exitCode !== null || performance.now() > deadline) throw new Error("the runner did not start")
    await sleep(1)
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, "exit")
  child.kill("SIGTERM")
  await gone
}
