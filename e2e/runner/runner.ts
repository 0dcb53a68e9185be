import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { setTimeout as pause } from "node:timers/promises"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { rpcSocketOf } from "@warren/protocol/places.ts"
import { dist, type Home } from "./home.ts"
import { Talk } from "./talk.ts"

/** How often it is tried whether a socket answers: nobody tells when it does. */
const tryMs = 5

interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

function endingOf(told: unknown[]): Ending {
  const [code, signal] = told as [Ending["code"], Ending["signal"]]
  return { code, signal }
}

/** The runner of a home, as the process it is: started, killed, started again. */
export class Runner implements AsyncDisposable {
  readonly talk: Talk
  /** From its start until it said how it is. */
  readonly readyMs: number
  readonly pid: number
  readonly #child: ChildProcess
  readonly #ended: Promise<Ending>

  private constructor(child: ChildProcess, ended: Promise<Ending>, talk: Talk, readyMs: number) {
    this.#child = child
    this.#ended = ended
    this.talk = talk
    this.readyMs = readyMs
    this.pid = child.pid ?? 0
  }

  /** Resolves when it answers; rejects with what it said when it ends instead. */
  static async start(home: Home, env: NodeJS.ProcessEnv = {}, programs = dist): Promise<Runner> {
    const begun = performance.now()
    const child = spawn(process.execPath, [`${programs}/runner.js`], {
      env: { ...process.env, WARREN_POOL_LEAST: "0", WARREN_POOL_MB: "0", ...env, WARREN_HOME: home.path },
      stdio: ["ignore", "ignore", "pipe"],
    })
    return Runner.of(child, rpcSocketOf(home.path), begun)
  }

  /** One that is killed so soon that it may not have come to answer: while it brings into order what the last one left. */
  static async killedEarly(home: Home, env: NodeJS.ProcessEnv, afterMs: number): Promise<void> {
    const child = spawn(process.execPath, [`${dist}/runner.js`], {
      env: { ...process.env, WARREN_POOL_LEAST: "0", WARREN_POOL_MB: "0", ...env, WARREN_HOME: home.path },
      stdio: "ignore",
    })
    const ended = once(child, "close")
    await pause(afterMs)
    child.kill("SIGKILL")
    await ended
  }

  /** The same for one that was started in another way. */
  static async of(child: ChildProcess, socket: string, begun: number): Promise<Runner> {
    let said = ""
    child.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()))
    const ended = once(child, "close").then(endingOf)
    const isOver = { value: false }
    void ended.then(() => (isOver.value = true))
    for (;;) {
      if (isOver.value) throw new Error(`the runner ended: ${said}`)
      try {
        const talk = await Talk.connect(socket)
        await talk.call("health.check", {})
        return new Runner(child, ended, talk, performance.now() - begun)
      } catch (failure) {
        if (Fault.from(failure).code !== "unavailable") throw failure
      }
      await pause(tryMs)
    }
  }

  /** At once, as `kill -9` does. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL")
    await this.#ended
    await this.talk[Symbol.asyncDispose]()
  }

  /** Resolves when it has ended by itself. */
  async died(): Promise<Ending> {
    const ending = await this.#ended
    await this.talk[Symbol.asyncDispose]()
    return ending
  }

  /** In order; its sandboxes go on. */
  async stop(): Promise<Ending> {
    this.#child.kill("SIGTERM")
    const ending = await this.#ended
    await this.talk[Symbol.asyncDispose]()
    return ending
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isRunning) await this.stop()
  }
}

/** What a runner says that does not start. */
export async function refusal(home: Home): Promise<string> {
  try {
    await using _ = await Runner.start(home)
    return "it started"
  } catch (failure) {
    return messageOf(failure)
  }
}
