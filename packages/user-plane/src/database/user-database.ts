import { Fault } from "@warren/base/fault.ts"
import { JoinedSignal } from "@warren/base/joined-signal.ts"
import type { Handlers, Received } from "@warren/protocol/contract.ts"
import type { databaseCalls } from "@warren/protocol/user-plane/database.ts"
import type { Result } from "./request.ts"
import { SqlProcess } from "./sql-process.ts"
import type { Purpose } from "./statement.ts"

type Asked = Received<typeof databaseCalls, "db.query">

const processesMax = 2
const waitingMax = 64
const idleMs = 30_000

interface UserDatabaseOptions {
  /** The user's own file, never the runner's. */
  readonly path: string
  /** `child.ts`, as a program. */
  readonly program: string
}

/** The database that a user's agents may do with as they like: one statement at a time, within limits. */
export class UserDatabase implements AsyncDisposable {
  readonly #options: UserDatabaseOptions
  readonly #idle: { readonly process: SqlProcess; readonly timer: NodeJS.Timeout }[] = []
  readonly #all = new Set<SqlProcess>()
  readonly #waiting: (() => void)[] = []
  readonly #stop = new AbortController()
  #busy = 0

  constructor(options: UserDatabaseOptions) {
    this.#options = options
  }

  async ask(purpose: Purpose, asked: Asked, caller: AbortSignal): Promise<Result> {
    const { timeoutMs, ...rest } = asked
    using until = new JoinedSignal(caller, this.#stop.signal)
    await this.#turn(until.signal)
    // The time counts from here: a queue is not the statement's fault.
    const late = AbortSignal.timeout(timeoutMs)
    const process = this.#take()
    try {
      const reply = await process.ask({ purpose, ...rest }, AbortSignal.any([until.signal, late]))
      if ("fault" in reply) throw Fault.fromData(reply.fault)
      return reply.result
    } catch (thrown) {
      throw thrown === late.reason ? tooLong(timeoutMs) : thrown
    } finally {
      await this.#give(process)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Fault("cancelled", "the database is closing"))
    for (const { timer } of this.#idle.splice(0)) clearTimeout(timer)
    await Promise.all([...this.#all].map((process) => process[Symbol.asyncDispose]()))
    this.#all.clear()
  }

  async #turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#busy < processesMax) return void this.#busy++
    if (this.#waiting.length >= waitingMax) throw new Fault("limit", `${waitingMax} statements are waiting already`)
    // Whoever hands over keeps the count as it is.
    await new Promise<void>((resolve, reject) => {
      const abort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(go), 1)
        reject(signal.reason)
      }
      const go = (): void => {
        signal.removeEventListener("abort", abort)
        resolve()
      }
      this.#waiting.push(go)
      signal.addEventListener("abort", abort, { once: true })
    })
  }

  #take(): SqlProcess {
    for (let next = this.#idle.pop(); next; next = this.#idle.pop()) {
      clearTimeout(next.timer)
      if (!next.process.isSpent) return next.process
      void this.#end(next.process)
    }
    const process = new SqlProcess(this.#options.program, this.#options.path)
    this.#all.add(process)
    return process
  }

  async #give(process: SqlProcess): Promise<void> {
    if (process.isSpent || this.#stop.signal.aborted) await this.#end(process)
    else this.#keep(process)
    const next = this.#waiting.shift()
    if (next) next()
    else this.#busy--
  }

  #keep(process: SqlProcess): void {
    const timer = setTimeout(() => {
      this.#idle.splice(
        this.#idle.findIndex((one) => one.process === process),
        1,
      )
      void this.#end(process)
    }, idleMs)
    timer.unref()
    this.#idle.push({ process, timer })
  }

  async #end(process: SqlProcess): Promise<void> {
    await process[Symbol.asyncDispose]()
    this.#all.delete(process)
  }
}

/** Its own limit, as that of its memory: nothing of ours was late. */
function tooLong(timeoutMs: number): Fault {
  return new Fault("limit", `the statement was ended after ${timeoutMs} ms`, {
    hint: "add an index, or ask for less at once",
    subject: "database:user",
  })
}

export function databaseHandlers(database: UserDatabase): Handlers<typeof databaseCalls> {
  return {
    "db.query": (input, { signal }) => database.ask("query", input, signal),
    "db.execute": (input, { signal }) => database.ask("execute", input, signal),
  }
}
