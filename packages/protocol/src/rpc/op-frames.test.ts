import { frameLimits } from "@warren/base/frame.ts"
import { createLog } from "@warren/base/log.ts"
import { Fault } from "@warren/base/fault.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { SocketPair } from "@warren/base/testing/socket-pair.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { contract, type Handlers } from "../contract.ts"
import { RawPeer } from "../testing/rpc-system.ts"
import { userPlane } from "../user-plane.ts"
import { opFrames } from "./op-frames.ts"
import { RpcConnection } from "./server.ts"

const lifecycle = contract({
  "health.check": userPlane["health.check"],
  "runner.shutdown": userPlane["runner.shutdown"],
  "logs.read": userPlane["logs.read"],
})

/** A runner that knows of itself what a test says, and has written some lines. */
class Runner implements AsyncDisposable {
  health: Awaited<ReturnType<Handlers<typeof lifecycle>["health.check"]>> = {
    status: "ok",
    user: "alice",
    version: "1",
    build: "x",
    pid: 42,
    startedAt: new Date(0).toISOString(),
    driver: "oci",
    tools: { shell: true, browser: false },
    sessions: { running: 0, all: 0 },
    found: { adopted: 0, asleep: 0, lost: 0, forgotten: 0, waiting: 0, removed: 0 },
    degraded: [],
  }
  lines = 0
  lineChars = 1
  failure: unknown
  /** What the doorkeeper was asked about; it lets in nobody when it is told so. */
  readonly asked: string[] = []
  mayEnter = true
  readonly logged: Record<string, unknown>[] = []
  readonly peer: RawPeer
  readonly #pair: SocketPair
  readonly #connection: RpcConnection<typeof lifecycle>

  private constructor(pair: SocketPair) {
    this.#pair = pair
    const log = createLog((line) => this.logged.push(JSON.parse(line) as Record<string, unknown>))
    const handlers = this.#handlers()
    const admit = ({ call }: { call: string }) => {
      this.asked.push(call)
      if (!this.mayEnter) throw new Fault("forbidden", "not you")
      return { caller: { name: "tester" }, ended: (result: string) => void this.asked.push(result) }
    }
    const options = { contract: lifecycle, handlers, log, build: "x", admit, ops: opFrames(handlers, log) }
    this.#connection = new RpcConnection(pair.right, { name: "tester" }, options)
    this.peer = new RawPeer(pair.left)
  }

  static async start(): Promise<Runner> {
    return new Runner(await SocketPair.make())
  }

  /** The answer to one frame. */
  async ask(message: object): Promise<{ op: string; payload: Record<string, unknown> }> {
    const before = this.peer.messages.length
    this.peer.send(message)
    await eventually(() => this.peer.messages.length > before || this.peer.isClosed)
    return this.peer.messages[before] as { op: string; payload: Record<string, unknown> }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection[Symbol.asyncDispose]()
    await this.#pair[Symbol.asyncDispose]()
  }

  #handlers(): Handlers<typeof lifecycle> {
    return {
      "health.check": async () => {
        // Later than what was asked after it could be answered.
        await new Promise(setImmediate)
        if (this.failure !== undefined) throw this.failure
        return this.health
      },
      "runner.shutdown": () => {
        this.health = { ...this.health, status: "stopping" }
        return Promise.resolve({ isStopping: true })
      },
      "logs.read": ({ limit }) =>
        Promise.resolve({ entries: Array.from({ length: Math.min(limit, this.lines) }, (_, n) => this.#line(n)) }),
    }
  }

  #line(n: number) {
    const minutesAgo = this.lines - n
    const time = new Date(Date.now() - minutesAgo * 60_000 + 30_000).toISOString()
    return {
      seq: n,
      entry: { time, level: "info" as const, event: `line.${n}`, fields: { x: "y".repeat(this.lineChars) } },
    }
  }
}

describe("op frames", () => {
  test("health_check without hello tells how the runner is", async () => {
    await using runner = await Runner.start()
    const startup = { shell_available: true, browser_available: false, sidecar_available: true, degraded_reasons: [] }
    expect(await runner.ask({ op: "health_check" })).toEqual({
      op: "health_status",
      payload: {
        ...{ user_id: "alice", healthy: true, sandbox_tier: "container", shutdown: false, runtime_pid: 42 },
        ...{ shell_available: true, browser_available: false },
        startup_status: { sandbox_tier: "container", ...startup },
      },
    })
  })

  test.each([
    ["process", "process"],
    ["oci", "container"],
    ["docker", "container"],
    ["microvm", "micro_vm"],
  ])("the driver %s is the tier %s", async (driver, tier) => {
    await using runner = await Runner.start()
    runner.health = { ...runner.health, driver }
    const { payload } = await runner.ask({ op: "health_check", payload: null, more: 1 })
    expect(payload).toMatchObject({ sandbox_tier: tier, startup_status: { sandbox_tier: tier } })
  })

  test("what is missing is told with its reasons", async () => {
    await using runner = await Runner.start()
    const degraded = [{ code: "no_cgroups", detail: "memory cannot be limited" }]
    runner.health = { ...runner.health, status: "degraded", tools: { shell: false, browser: false }, degraded }
    expect((await runner.ask({ op: "health_check" })).payload).toMatchObject({
      healthy: true,
      message: "memory cannot be limited",
      startup_status: { sidecar_available: false, shell_available: false, degraded_reasons: degraded },
    })
  })

  test("shutdown_user stops the runner of that user, and says so again", async () => {
    await using runner = await Runner.start()
    const ask = (user: string): object => ({ op: "shutdown_user", payload: { user_id: user } })
    expect(await runner.ask(ask("bob"))).toMatchObject({ op: "error", payload: { code: "unknown_user" } })
    expect(runner.health.status).toBe("ok")
    const done = { user_id: "alice", shutdown: true }
    expect(await runner.ask(ask("alice"))).toEqual({
      op: "shutdown_status",
      payload: { ...done, already_stopped: false },
    })
    expect(await runner.ask(ask("alice"))).toMatchObject({ payload: { ...done, already_stopped: true } })
    expect((await runner.ask({ op: "health_check" })).payload).toMatchObject({ healthy: false, shutdown: true })
  })

  test("logs are the newest lines, as text or as they are", async () => {
    await using runner = await Runner.start()
    runner.lines = 5
    const { op, payload } = await runner.ask({ op: "logs", payload: { tail: 2 } })
    expect([op, payload["truncated"]]).toEqual(["logs", true])
    const [first, second] = payload["entries"] as Record<string, string>[]
    expect(first).toEqual({
      ...{ timestamp: expect.any(String), source: "process_file", role: "runtime", stream: "stdout" },
      message: 'info line.3 x="y"',
    })
    expect(second?.["message"]).toContain("line.4")
    const all = await runner.ask({ op: "logs" })
    expect([(all.payload["entries"] as object[]).length, all.payload["truncated"]]).toEqual([5, false])
    const json = await runner.ask({ op: "logs", payload: { format: "json", tail: 1 } })
    const [entry] = json.payload["entries"] as { message: string }[]
    expect(JSON.parse(entry?.message ?? "")).toMatchObject({ event: "line.4" })
  })

  test.each([
    ["2m", 2],
    ["1h", 5],
    ["1s", 0],
    [new Date(Date.now() - 3_600_000).toISOString(), 5],
    [new Date(Date.now() + 3_600_000).toISOString(), 0],
    [null, 5],
  ])("logs since %s", async (since, count) => {
    await using runner = await Runner.start()
    runner.lines = 5
    const { payload } = await runner.ask({ op: "logs", payload: { since } })
    expect((payload["entries"] as object[]).length).toBe(count)
  })

  test.each([{ role: "sidecar" }, { stream: "stderr" }])(
    "logs that are not here are said not to be: %o",
    async (wish) => {
      await using runner = await Runner.start()
      runner.lines = 5
      const { payload } = await runner.ask({ op: "logs", payload: wish })
      expect(payload).toEqual({ entries: [], truncated: false, warnings: [expect.any(String)] })
    },
  )

  test("as many lines as the limit, and not one more; and no longer answer than those tools read", async () => {
    await using runner = await Runner.start()
    runner.lines = 1_000
    const { payload } = await runner.ask({ op: "logs", payload: { tail: 1_000 } })
    const entries = payload["entries"] as { message: string }[]
    expect(entries.at(-1)?.message).toContain("line.999")
    expect(payload["truncated"]).toBe(true)
    expect(await runner.ask({ op: "logs", payload: { tail: 1_001 } })).toMatchObject({
      payload: { code: "invalid_request" },
    })
    runner.lineChars = 10_000
    const long = await runner.ask({ op: "logs", payload: { tail: 1_000 } })
    expect(JSON.stringify(long).length).toBeLessThanOrEqual(128 * 1024)
    expect((long.payload["entries"] as object[]).length).toBeGreaterThan(10)
    expect(long.payload["truncated"]).toBe(true)
  })

  test.each([
    { op: "reboot" },
    { op: "" },
    { op: "shutdown_user" },
    { op: "shutdown_user", payload: {} },
    { op: "shutdown_user", payload: { user_id: 5 } },
    { op: "logs", payload: { tail: 0 } },
    { op: "logs", payload: { since: "yesterday" } },
    { op: "logs", payload: [] },
  ])("%o is refused, and the next is answered", async (message) => {
    await using runner = await Runner.start()
    expect(await runner.ask(message)).toMatchObject({ op: "error", payload: { code: "invalid_request" } })
    expect((await runner.ask({ op: "health_check" })).op).toBe("health_status")
  })

  test("nobody gets past who decides on calls", async () => {
    await using runner = await Runner.start()
    await runner.ask({ op: "health_check" })
    runner.mayEnter = false
    const ask = { op: "shutdown_user", payload: { user_id: "alice" } }
    expect(await runner.ask(ask)).toEqual({ op: "error", payload: { code: "internal", message: "not you" } })
    await eventually(() => runner.asked.length === 3)
    expect(runner.asked).toEqual(["health.check", "ok", "runner.shutdown"])
    expect(runner.health.status).toBe("ok")
  })

  test("too many at once are refused, and those before are answered", async () => {
    await using runner = await Runner.start()
    runner.peer.send(...Array.from({ length: 17 }, () => ({ op: "health_check" })))
    await eventually(() => runner.peer.messages.length === 17)
    expect(runner.peer.messages.filter(({ op }) => op === "health_status").length).toBe(16)
    expect(runner.peer.messages.filter(({ op }) => op === "error").length).toBe(1)
  })

  test("are answered in the order they came in, and hello still works after them", async () => {
    await using runner = await Runner.start()
    runner.peer.send({ op: "health_check" }, { op: "logs" }, { op: "nonsense" }, { op: "health_check" })
    await eventually(() => runner.peer.messages.length === 4)
    expect(runner.peer.messages.map((message) => message["op"])).toEqual([
      "health_status",
      "logs",
      "error",
      "health_status",
    ])
    runner.peer.hello().send({ id: 1, call: "health.check", in: {} })
    expect(await runner.peer.answer(1)).toMatchObject({ out: { user: "alice" } })
    runner.peer.send({ op: "health_check" })
    expect(await runner.peer.answer(0)).toMatchObject({ fault: { code: "invalid" } })
  })

  test("a fault is told as `internal` with its message, a bug without, and the log has it", async () => {
    await using runner = await Runner.start()
    runner.failure = new Fault("unavailable", "not now")
    expect(await runner.ask({ op: "health_check" })).toEqual({
      op: "error",
      payload: { code: "internal", message: "not now" },
    })
    expect(runner.logged).toEqual([])
    runner.failure = new TypeError("password=hunter2")
    expect(JSON.stringify(await runner.ask({ op: "health_check" }))).not.toContain("hunter2")
    expect(runner.logged).toMatchObject([{ event: "rpc.bug", call: "op" }])
  })

  test("whatever is sent is answered with a frame those tools know", async () => {
    await using runner = await Runner.start()
    const junk = fc.jsonValue({ maxDepth: 2 })
    const message = fc.record(
      { op: fc.oneof(fc.constantFrom("health_check", "logs", "shutdown_user"), fc.string()), payload: junk },
      { requiredKeys: ["op"] },
    )
    await fc.assert(
      fc.asyncProperty(message, async (given) => {
        const answer = await runner.ask(given)
        expect(["health_status", "shutdown_status", "logs", "error"]).toContain(answer.op)
        expect(JSON.stringify(answer).length).toBeLessThan(frameLimits.jsonBytesMax)
      }),
      { numRuns: 100 },
    )
  })
})
