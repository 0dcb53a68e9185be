import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { realpath } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { connectUnix } from "@warren/base/unix-socket.ts"
import type { Asked, Answer, CallName, FeedName, Item, Numbered } from "@warren/protocol/contract.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import { rpcSocketOf } from "@warren/protocol/places.ts"
import { RpcClient } from "@warren/protocol/rpc/client.ts"
import { openStream } from "@warren/protocol/rpc/stream.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"
import type { Posture } from "@warren/drivers/posture.ts"
import type { Context } from "./metric.ts"
import { groupOf, memoryBelow, memoryOf, type SandboxMemory } from "./sandbox-memory.ts"
import { inParallel } from "./sandboxes.ts"

type Plane = typeof userPlane
type Execution = Awaited<ReturnType<typeof openStream<Plane, "process.exec">>>

const readyMs = 20_000
const atOnce = 8
const pollMs = 5

/** A real runner in a process and a folder of its own, asked over its socket. */
export class Runner implements AsyncDisposable {
  /** Its WARREN_HOME. */
  readonly home: string
  readonly pid: number
  readonly #client: RpcClient<Plane>
  readonly #socket: string
  readonly #made = new Set<string>()
  readonly #stop: () => Promise<void>

  private constructor(home: string, pid: number, client: RpcClient<Plane>, socket: string, stop: () => Promise<void>) {
    this.home = home
    this.pid = pid
    this.#client = client
    this.#socket = socket
    this.#stop = stop
  }

  /** Skips the metric where there can be none. `env`: settings of the runner. */
  static async start(context: Context, env: Readonly<Record<string, string>> = {}): Promise<Runner> {
    if (process.getuid?.() !== 0) context.skip("sandboxes of the oci driver need root")
    if (!existsSync("dist/runner.js")) context.skip("dist/runner.js is not there: npm run build")
    const home = join(await realpath(context.folder), "h")
    const child = spawn(process.execPath, [resolve("dist/runner.js")], {
      env: { ...process.env, WARREN_HOME: home, ...env },
      stdio: ["ignore", "ignore", "inherit"],
      // In a session of its own: Ctrl-C is for the one that measures, which needs it to take its sandboxes away.
      detached: true,
    })
    const gone = once(child, "exit")
    const stop = async (): Promise<void> => {
      child.kill("SIGTERM")
      await gone
    }
    try {
      const socket = rpcSocketOf(home)
      const client = new RpcClient(await connected(socket), userPlane, "bench")
      return context.scope.use(new Runner(home, child.pid ?? 0, client, socket, stop))
    } catch (failure) {
      await stop()
      throw failure
    }
  }

  call<K extends CallName<Plane>>(name: K, input: Asked<Plane, K>): Promise<Answer<Plane, K>> {
    return this.#client.call(name, input)
  }

  feed<K extends FeedName<Plane>>(name: K, input: Asked<Plane, K>): AsyncIterable<Numbered<Item<Plane, K>>> {
    return this.#client.feed(name, input)
  }

  async create(wishes: Asked<Plane, "session.create"> = {}): Promise<Answer<Plane, "session.create">> {
    const session = await this.call("session.create", wishes)
    this.#made.add(session.id)
    return session
  }

  /** Takes away at the end what somebody else made in it. */
  own(id: string): void {
    this.#made.add(id)
  }

  async createMany(count: number): Promise<void> {
    await inParallel(atOnce, count, async () => void (await this.create()))
  }

  async delete(id: string): Promise<void> {
    await this.call("session.delete", { id })
    this.#made.delete(id)
  }

  /** What the sandbox of a session holds. */
  memoryOf(session: string): Promise<SandboxMemory> {
    return memoryOf(this.#grouped(session))
  }

  /** What the sandboxes of all sessions hold; `session` is one of them. */
  async memoryOfAll(session: string): Promise<SandboxMemory> {
    return memoryBelow(dirname(await groupOf(this.#grouped(session))))
  }

  /** Runs a command to its end. */
  async exec(session: string, cmd: string): Promise<void> {
    await this.#run({ session, cmd })
  }

  async execTrue(session: string): Promise<void> {
    await this.#run({ session, argv: ["true"] })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const made = [...this.#made]
    try {
      await inParallel(atOnce, made.length, async (index) => {
        const id = made[index]
        if (id !== undefined) await this.delete(id)
      })
    } finally {
      await this.#client[Symbol.asyncDispose]()
      await this.#stop()
    }
  }

  #grouped(id: string): Parameters<typeof memoryOf>[0] {
    // The wire promises two fields of a posture; the rest is the driver's.
    return { posture: async () => (await this.call("session.posture", { id })) as unknown as Posture }
  }

  /** Starts a command; whoever asked reads what it prints, or not. */
  async open(input: Asked<Plane, "process.exec">): Promise<Execution> {
    return openStream(await connectUnix(this.#socket), userPlane, "process.exec", input)
  }

  /** Until as many wait in the pool as should: filling it is not what is measured. */
  async poolFull(): Promise<void> {
    for (;;) {
      const { pools } = await this.call("pool.list", {})
      if (pools.length > 0 && pools.every(({ ready, wanted }) => ready >= wanted)) return
      await new Promise((resolve) => setTimeout(resolve, pollMs))
    }
  }

  async #run(input: Asked<Plane, "process.exec">): Promise<void> {
    await using talk = await this.open(input)
    for (;;) {
      const item = await talk.next()
      if (item === undefined) throw new Error("it ended without an exit")
      if (item instanceof Chunk || item.ev !== "exit") continue
      if (item.exitCode !== 0) throw new Error(`it ended with ${item.exitCode}`)
      return
    }
  }
}

async function connected(socket: string): ReturnType<typeof connectUnix> {
  const deadline = performance.now() + readyMs
  for (;;) {
    try {
      return await connectUnix(socket)
    } catch (failure) {
      if (Fault.from(failure).code !== "unavailable" || performance.now() > deadline) throw failure
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
