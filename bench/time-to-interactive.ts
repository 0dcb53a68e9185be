import { e2b } from "../e2e/e2b/compute-sdk.ts"
import { startControl } from "./control.ts"
import type { Amount, Context } from "./metric.ts"
import { Runner } from "./runner.ts"

interface Made {
  runCommand(command: string): Promise<{ exitCode: number; stdout: string }>
  destroy(): Promise<unknown>
}

interface Waves {
  readonly count: number
  readonly apartMs: number
  readonly waves: Amount
}

const readyTries = 1_000

/**
 * Warren behind the published adapter of ComputeSDK: from asking for a sandbox to the answer of `node -v` in it. Each is new, and is
 * used once. One that fails fails the measurement.
 */
export class TimeToInteractive {
  readonly #runner: Runner
  readonly #times: number[] = []

  private constructor(runner: Runner) {
    this.#runner = runner
  }

  /**
   * Asks for waves of `count`, each `apartMs` after the one before. All of it before anything is reported: the harness would stop
   * in the middle of a wave, with those that were asked for first.
   */
  static async start(context: Context, { count, apartMs, waves }: Waves): Promise<TimeToInteractive> {
    const runner = await Runner.start(context, {})
    const { port, token } = await startControl(context, runner)
    const url = `http://127.0.0.1:${port}`
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const answer = await fetch(`${url}/v1/tokens`, { method: "POST", headers, body: JSON.stringify({ form: "e2b" }) })
    const { token: key } = (await answer.json()) as { token: string }
    Object.assign(process.env, { E2B_API_KEY: key, E2B_API_URL: `${url}/e2b`, E2B_SANDBOX_URL: url })
    const one = new TimeToInteractive(runner)
    // The pool holds what was asked for of late.
    await one.#wave(count, 0)
    await one.#settled(count)
    for (let at = 0; at < (context.isQuick ? waves.quick : waves.full); at++) {
      one.#times.push(...(await one.#wave(count, apartMs)))
      await one.#settled(count)
    }
    return one
  }

  /** In turns, from the beginning again after the last: what the harness takes to warm up is not missing afterwards. */
  next(): number {
    const first = this.#times.shift() ?? Number.NaN
    this.#times.push(first)
    return first
  }

  async #wave(count: number, apartMs: number): Promise<number[]> {
    const made: Made[] = []
    const times = await Promise.all(
      Array.from({ length: count }, async (_, at) => {
        await new Promise((wait) => setTimeout(wait, at * apartMs))
        const started = performance.now()
        const sandbox = (await e2b({}).sandbox.create()) as unknown as Made
        made.push(sandbox)
        const { exitCode, stdout } = await sandbox.runCommand("node -v")
        if (exitCode !== 0 || !stdout.startsWith("v")) throw new Error(`node -v: ${exitCode} ${stdout}`)
        return performance.now() - started
      }),
    )
    await Promise.all(made.map((sandbox) => sandbox.destroy()))
    return times
  }

  async #settled(count: number): Promise<void> {
    for (let at = 0; at < readyTries; at++) {
      const { pools } = await this.#runner.call("pool.list", {})
      if (pools.some(({ ready, wanted }) => ready >= count && ready >= wanted)) return
      await new Promise((wait) => setTimeout(wait, 20))
    }
  }
}
