import { readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { createVitest, type Vitest } from "vitest/node"

/** A test that waits for ever for what is not there any more has noticed, too. */
const runMs = 120_000
const closeMs = 10_000

/** Tests that are asked again and again. One Vitest for all of it: to start one costs more than most of them. */
export class Jury implements AsyncDisposable {
  readonly #root: string
  #vitest: Promise<Vitest> | undefined

  constructor(root: string) {
    this.#root = root
  }

  /** Has a file read again; also when it is as it was. */
  async changed(file: string): Promise<void> {
    const vitest = await this.#opened()
    vitest.invalidateFile(join(this.#root, file))
  }

  /** Whether one of these fails. */
  async isMissed(tests: readonly string[]): Promise<boolean> {
    const vitest = await this.#opened()
    const project = vitest.getRootProject()
    const asked = tests.map((test) => project.createSpecification(join(this.#root, test)))
    vitest.state.clearErrors()
    const over = new AbortController()
    const late = sleep(runMs, undefined, { signal: over.signal }).catch(() => undefined)
    const result = await Promise.race([vitest.rerunTestSpecifications(asked), late])
    over.abort()
    if (!result) return await this.#startAgain()
    const answers = asked.map(({ moduleId }) => result.testModules.find((one) => one.moduleId === moduleId))
    return result.unhandledErrors.length > 0 || answers.some((one) => !one?.ok())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#vitest)?.close()
  }

  /** Who spins hears nothing, so their process is ended, and with it the Vitest that waits for it. */
  async #startAgain(): Promise<true> {
    for (const pid of workers()) process.kill(pid, "SIGKILL")
    await Promise.race([this[Symbol.asyncDispose](), sleep(closeMs)])
    this.#vitest = undefined
    return true
  }

  #opened(): Promise<Vitest> {
    // One file after the other, so that the first failure is the end of it.
    return (this.#vitest ??= createVitest("test", {
      ...{ root: this.#root, watch: false, reporters: [{}], bail: 1, maxWorkers: 1 },
    }))
  }
}

function workers(): number[] {
  return readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").split(" ").filter(Boolean).map(Number)
}
