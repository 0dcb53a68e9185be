import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { Turns } from "@warren/base/turns.ts"
import type { Sandbox } from "@warren/drivers/driver.ts"
import { ask } from "@warren/drivers/init/ask.ts"
import { Operation } from "@warren/drivers/init/operation.ts"
import type { Received } from "@warren/protocol/contract.ts"
import { InitProcess } from "@warren/protocol/init.ts"
import type { Terminal, terminalCalls } from "@warren/protocol/user-plane/terminals.ts"
import { z } from "zod"
import type { EnvironmentOf } from "../processes/handlers.ts"
import { Run } from "../processes/run.ts"
import { marked, markOf } from "../sessions/marked.ts"
import type { Sessions } from "../sessions/sessions.ts"
import type { Use } from "../sessions/use.ts"
import { Audience, type Size } from "./audience.ts"
import { Viewer } from "./viewer.ts"

type Input<K extends keyof typeof terminalCalls> = Received<typeof terminalCalls, K>
type Wishes = Pick<Input<"terminal.attach">, "cmd" | "env" | "cwd" | "user">
type Found = z.output<typeof InitProcess>

export const terminalLimits = {
  /** Of one session; one more is refused. A sandbox has 64 ptys, and programs inside want some, too. */
  perSessionMax: 48,
  /** Of its output, for those who come later. */
  replayBytes: 256 * 1024,
  /** For what runs in one to end when it is hung up. */
  graceMs: 2_000,
  lookMs: 50,
} as const

const usualSize: Size = { cols: 80, rows: 24 }
const Processes = z.object({ processes: z.array(InitProcess) })

/** A login shell of the person's own kind, or the command that was asked for. */
const script = `if [ $# -gt 0 ]; then exec sh -c "$1"; fi
[ -x "\${SHELL:-}" ] && exec "$SHELL" -l
command -v bash >/dev/null && exec bash -l
exec sh -l`

/** Ptys with names. They live in the sandbox: it keeps their output for those who come later, and a new runner finds them. */
export class Terminals {
  readonly #sessions: Sessions
  readonly #environmentOf: EnvironmentOf
  readonly #clock: Clock
  readonly #turns = new Turns()
  /** Gone with the sandbox. */
  readonly #audiences = new WeakMap<Sandbox, Map<number, Audience>>()

  constructor(sessions: Sessions, environmentOf: EnvironmentOf, clock: Clock) {
    this.#sessions = sessions
    this.#environmentOf = environmentOf
    this.#clock = clock
  }

  async open(
    { session, name, cols, rows, ...wishes }: Input<"terminal.open">,
    signal: AbortSignal,
  ): Promise<{ terminal: Terminal; isNew: boolean }> {
    using use = await this.#sessions.use(session, signal)
    const { process, isNew } = await this.#ensured(use, name, wishes, { cols, rows }, signal)
    return { terminal: this.#shown(use.record.id, use.live.sandbox, process), isNew }
  }

  /** Without waking it: what sleeps has no terminals. */
  async list(session: string, signal: AbortSignal): Promise<Terminal[]> {
    const { id, state } = this.#sessions.record(session)
    if (state !== "running") return []
    const { sandbox } = this.#sessions.live(session)
    return (await found(sandbox, signal)).map((process) => this.#shown(id, sandbox, process))
  }

  async attach(asked: Input<"terminal.attach">, signal: AbortSignal): Promise<Viewer> {
    const { session, name, after, cols, rows, ...wishes } = asked
    const size = cols === undefined || rows === undefined ? undefined : { cols, rows }
    const use = await this.#sessions.use(session, signal)
    try {
      const { process } = await this.#ensured(use, name, wishes, size ?? usualSize, signal)
      const audience = this.#audience(use.live.sandbox, process.pid)
      const viewer = new Viewer(await Run.start(use, { op: "attach", pid: process.pid, after }, signal), audience)
      if (size) viewer.send({ op: "resize", ...size })
      return viewer
    } catch (failure) {
      use[Symbol.dispose]()
      throw failure
    }
  }

  /** Hung up; what does not go by that is killed. */
  async close({ session, name }: Input<"terminal.close">, signal: AbortSignal): Promise<boolean> {
    const { state } = this.#sessions.record(session)
    if (state !== "running") return false
    const { sandbox } = this.#sessions.live(session)
    const named = async (): Promise<Found | undefined> => (await found(sandbox, signal)).find(isNamed(name))
    const process = await named()
    if (!process) return false
    const kill = (how: string) => ask(sandbox, { op: "kill", pid: process.pid, name: how }, z.object({}), signal)
    await kill("SIGHUP")
    const deadline = this.#clock.monotonic() + terminalLimits.graceMs
    while ((await named())?.pid === process.pid) {
      if (this.#clock.monotonic() >= deadline) await kill("SIGKILL")
      await this.#clock.sleep(terminalLimits.lookMs, signal)
    }
    this.#audiences.get(sandbox)?.delete(process.pid)
    return true
  }

  /** One at a time for each session, so that two who come at once share one. */
  #ensured(
    use: Use,
    name: string,
    wishes: Wishes,
    size: Size,
    signal: AbortSignal,
  ): Promise<{ process: Found; isNew: boolean }> {
    const { sandbox } = use.live
    return this.#turns.take(use.record.id, async () => {
      this.#sessions.requireUsual(use, "terminals")
      const known = await found(sandbox, signal)
      const process = known.find(isNamed(name))
      if (process) return { process, isNew: false }
      if (known.length >= terminalLimits.perSessionMax)
        throw new Fault("limit", `a session has at most ${terminalLimits.perSessionMax} terminals`)
      this.#forget(sandbox, known)
      const pid = await this.#start(use, name, wishes, size, signal)
      this.#audience(sandbox, pid).resize(size)
      const made = (await found(sandbox, signal)).find((one) => one.pid === pid)
      if (made) return { process: made, isNew: true }
      throw new Fault("conflict", "what runs in the terminal ended at once", {
        hint: "is there such a folder, or shell?",
      })
    })
  }

  async #start(use: Use, name: string, { cmd, env, cwd, user }: Wishes, pty: Size, signal: AbortSignal) {
    const common = { TERM: "xterm-256color", COLORTERM: "truecolor" }
    const request = {
      op: "spawn" as const,
      argv: marked({ kind: "terminal", name }, script, ...(cmd === undefined ? [] : [cmd])),
      env: this.#environmentOf(use, { ...common, ...env }),
      ...{ pty, detached: true, replayBytes: terminalLimits.replayBytes },
      ...(cwd === undefined ? {} : { cwd }),
      ...(user === undefined ? {} : { user }),
    }
    await using operation = new Operation(await use.live.sandbox.connect(signal), request, signal)
    return (await operation.event("started")).pid
  }

  #shown(session: string, sandbox: Sandbox, { pid, argv, startedMs }: Found): Terminal {
    const audience = this.#audiences.get(sandbox)?.get(pid)
    return {
      ...{ session, name: markOf(argv)?.name ?? "", pid, startedAt: new Date(startedMs).toISOString() },
      viewers: audience?.viewers ?? 0,
      ...(audience?.size && { size: audience.size }),
    }
  }

  #audience(sandbox: Sandbox, pid: number): Audience {
    const ofSandbox = this.#audiences.get(sandbox) ?? new Map<number, Audience>()
    this.#audiences.set(sandbox, ofSandbox)
    const audience = ofSandbox.get(pid) ?? new Audience()
    ofSandbox.set(pid, audience)
    return audience
  }

  /** Of those that have ended. */
  #forget(sandbox: Sandbox, known: readonly Found[]): void {
    const ofSandbox = this.#audiences.get(sandbox)
    const pids = new Set(known.map(({ pid }) => pid))
    for (const pid of ofSandbox?.keys() ?? []) if (!pids.has(pid)) ofSandbox?.delete(pid)
  }
}

async function found(sandbox: Sandbox, signal: AbortSignal): Promise<Found[]> {
  const { processes } = await ask(sandbox, { op: "ps" }, Processes, signal)
  return processes
    .filter(({ running, detached, argv }) => running && detached && markOf(argv)?.kind === "terminal")
    .toSorted((a, b) => a.startedMs - b.startedMs || a.pid - b.pid)
}

function isNamed(name: string): (process: Found) => boolean {
  return ({ argv }) => markOf(argv)?.name === name
}
