import type { Asked } from "@warren/protocol/contract.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Desk } from "../desk.ts"
import type { Runner } from "../runner/runner.ts"
import type { Ending } from "./ended.ts"
import { Feeding } from "./feeding.ts"
import { rawMode } from "./raw-mode.ts"
import type { Sink } from "./sink.ts"

type ExecInput = Asked<typeof userPlane, "process.exec">

interface ProgramOptions {
  /** A terminal of its own inside, joined to this one. */
  readonly hasTerminal: boolean
  readonly hasInput: boolean
  readonly sink: Sink
}

/** Runs a program in a session as if it ran here: input, output, signals, window and end are carried over. */
export async function runProgram(
  runner: Runner,
  desk: Desk,
  input: ExecInput,
  { hasTerminal, hasInput, sink }: ProgramOptions,
): Promise<Ending> {
  const { terminal, interrupts } = desk
  const pty = hasTerminal ? { pty: terminal.window } : {}
  const env = hasTerminal ? { ...terminalVariables(terminal.env), ...input.env } : input.env
  const signals = new Signals((pid, signal) =>
    runner.callAnyway("process.kill", { session: input.session, pid, signal }),
  )
  // Taken before anything is asked for: a program that has begun hears of every interrupt.
  using _taken = interrupts.take((name) => signals.send(name))
  await using conversation = await runner.open("process.exec", { ...input, ...pty, env, stdin: hasInput })
  using _raw = hasTerminal ? rawMode(terminal, (window) => conversation.send({ op: "resize", ...window })) : nothing
  using _feeding = hasInput ? new Feeding(terminal.stdin, conversation) : nothing
  for (let item = await conversation.next(); item !== undefined; item = await conversation.next()) {
    if (item instanceof Chunk) await sink.take(item)
    else if (item.ev === "started") signals.reach(item.pid)
    else if (item.ev === "exit") return item
  }
  throw new Fault("unavailable", "the runner went away before the program ended")
}

const nothing: Disposable = { [Symbol.dispose]: () => undefined }

function terminalVariables(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const known = ["TERM", "COLORTERM"].flatMap((name) => (env[name] ? [[name, env[name]] as const] : []))
  return { TERM: "xterm-256color", ...Object.fromEntries(known) }
}

/**
 * Interrupts on their way to a program. They do not go the way of its input, where they would wait behind bytes that nobody
 * reads. The second one kills; with the third this process gives up waiting.
 */
class Signals {
  readonly #kill: (pid: number, signal: string) => Promise<unknown>
  #pid: number | undefined
  #waiting: string[] = []
  #count = 0

  constructor(kill: (pid: number, signal: string) => Promise<unknown>) {
    this.#kill = kill
  }

  send(name: string): void {
    this.#count++
    if (this.#count > 2) process.exit(130)
    this.#waiting.push(this.#count === 2 ? "SIGKILL" : name)
    this.#flush()
  }

  reach(pid: number): void {
    this.#pid = pid
    this.#flush()
  }

  #flush(): void {
    if (this.#pid === undefined) return
    for (const name of this.#waiting.splice(0)) {
      // A program that has just ended cannot be told anything any more, and how it ended is on its way.
      this.#kill(this.#pid, name).catch(() => undefined)
    }
  }
}
