import { setTimeout as sleep } from "node:timers/promises"
import { defineMetric, elapsedMs } from "../metric.ts"
import { Runner } from "../runner.ts"

/** Until every buffer on the way is full. */
const fillMs = 200

/** `true` in a session while nobody reads what another command in it prints without end, against `true` with nothing else there. */
export const metric = defineMetric({
  name: "output.slow-reader",
  unit: "ms",
  goal: { ratioMax: 1.3 },
  samples: { full: 600, quick: 60 },
  perTurn: 20,
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const { id } = await runner.create({ network: { mode: "none" } })
    const held = new HeldOutput(runner, id)
    context.scope.use(held)
    return { runner, id, held }
  },
  async run({ runner, id, held }) {
    await held.hold()
    return elapsedMs(() => runner.execTrue(id))
  },
  baseline: {
    name: "nothing held back",
    async run({ runner, id, held }) {
      await held.release()
      return elapsedMs(() => runner.execTrue(id))
    },
  },
})

/** A command that prints without end to somebody who does not read. */
class HeldOutput implements AsyncDisposable {
  readonly #runner: Runner
  readonly #session: string
  #talk: AsyncDisposable | undefined

  constructor(runner: Runner, session: string) {
    this.#runner = runner
    this.#session = session
  }

  async hold(): Promise<void> {
    if (this.#talk) return
    this.#talk = await this.#runner.open({ session: this.#session, argv: ["cat", "/dev/zero"] })
    await sleep(fillMs)
  }

  async release(): Promise<void> {
    const talk = this.#talk
    this.#talk = undefined
    await talk?.[Symbol.asyncDispose]()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release()
  }
}
