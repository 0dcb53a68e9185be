import { Fault } from "@warren/base/fault.ts"
import { ask } from "@warren/drivers/init/ask.ts"
import { Shell } from "@warren/drivers/init/shell.ts"
import type { Handlers, Received } from "@warren/protocol/contract.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import { InitProcess } from "@warren/protocol/init.ts"
import type { Ended, Process, processCalls } from "@warren/protocol/user-plane/processes.ts"
import { z } from "zod"
import type { Sessions } from "../sessions/sessions.ts"
import type { Use } from "../sessions/use.ts"
import { endedOf } from "./ended.ts"
import { Port } from "./port.ts"
import { Run } from "./run.ts"
import { ShellRun } from "./shell-run.ts"

type Calls = typeof processCalls
type Command = Received<Calls, "process.spawnRpc">
type OnProcess = Received<Calls, "process.status">

/** What a program of a session finds in its environment. */
export type EnvironmentOf = (use: Use, asked: Readonly<Record<string, string>>) => Record<string, string>

/** Programs in sessions. */
export function processHandlers(sessions: Sessions, environmentOf: EnvironmentOf): Handlers<Calls> {
  const spawned = async (command: Command, more: object, signal: AbortSignal): Promise<{ pid: number }> => {
    using use = await sessions.use(command.session, signal)
    await using run = await Run.start(use, { ...request(use, command), ...more, detached: true }, signal)
    const started = await run.next()
    if (started instanceof Chunk || started?.ev !== "started") throw new Fault("internal", "init did not start it")
    return { pid: started.pid }
  }
  const request = (use: Use, { argv, cmd, env, cwd, user }: Omit<Command, "session">) => {
    if ((argv === undefined) === (cmd === undefined)) throw new Fault("invalid", "say argv or cmd, one of the two")
    return {
      op: "spawn" as const,
      argv: argv ?? ["sh", "-c", cmd ?? ""],
      env: environmentOf(use, env),
      ...(cwd === undefined ? {} : { cwd }),
      ...(user === undefined ? {} : { user }),
    }
  }
  const listed = async (session: string, signal: AbortSignal): Promise<z.output<typeof Process>[]> => {
    using use = await sessions.use(session, signal)
    const answer = await ask(use.live.sandbox, { op: "ps" }, Processes, signal)
    return answer.processes.map(processOf)
  }
  const status = async ({ session, pid }: OnProcess, signal: AbortSignal): Promise<z.output<typeof Process>> => {
    const found = (await listed(session, signal)).find((process) => process.pid === pid)
    if (!found) throw new Fault("not_found", `there is no process ${pid} that was started here`)
    return found
  }
  const attach = async (
    { session, pid }: OnProcess,
    how: { after: number; hold?: boolean },
    signal: AbortSignal,
  ): Promise<Run> => Run.start(await sessions.use(session, signal), { op: "attach", pid, ...how }, signal)

  return {
    "process.exec": async ({ session, stdin, pty, timeoutMs, outputBytesMax, ...command }, { signal }) => {
      const use = await sessions.use(session, signal)
      const more = { stdin, timeoutMs, outputBytesMax, ...(pty ? { pty } : {}) }
      try {
        return await Run.start(use, { ...request(use, command), ...more }, signal)
      } catch (failure) {
        use[Symbol.dispose]()
        throw failure
      }
    },
    "process.spawn": ({ stdin, pty, timeoutMs, replayBytes, hold, ...command }, { signal }) =>
      spawned(command, { stdin, timeoutMs, replayBytes, hold, ...(pty ? { pty } : {}) }, signal),
    "process.spawnRpc": (command, { signal }) => spawned(command, { stdin: true }, signal),
    "process.attach": ({ after, hold, ...which }, { signal }) => attach(which, { after, hold }, signal),
    "process.list": async ({ session }, { signal }) => ({ processes: await listed(session, signal) }),
    "process.status": (which, { signal }) => status(which, signal),
    "process.kill": async ({ session, pid, signal: name }, { signal }) => {
      const { isRunning } = await status({ session, pid }, signal)
      using use = await sessions.use(session, signal)
      if (isRunning) await ask(use.live.sandbox, { op: "kill", pid, name }, z.object({}), signal)
      return { wasRunning: isRunning }
    },
    "process.resize": async ({ cols, rows, ...which }, { signal }) => {
      await using run = await attach(which, { after: Number.MAX_SAFE_INTEGER }, signal)
      await run.next()
      run.send({ op: "resize", cols, rows })
      await run.finish()
      return { ok: true }
    },
    "process.writeStdin": async ({ text, encoding, isLast, ...which }, { signal }) => {
      // After the end of what is kept: nothing of its output is wanted here.
      await using run = await attach(which, { after: Number.MAX_SAFE_INTEGER }, signal)
      await run.next()
      const bytes = Buffer.from(text, encoding)
      await run.write(bytes)
      if (isLast) run.send({ op: "eof" })
      await run.finish()
      return { bytes: bytes.length }
    },
    "process.readStdout": async ({ after, waitMs, limit, ...which }, { signal }) => {
      const patience = new AbortController()
      await using run = await attach(which, { after }, AbortSignal.any([signal, patience.signal]))
      return await readSome(run, { after, limit, waitMs, signal, patience })
    },
    "process.subscribeStdout": (which, { signal }) => lines(() => attach(which, { after: 0 }, signal)),
    "shell.open": async ({ session, env, cwd, user, path }, { signal }) => {
      using use = await sessions.use(session, signal)
      sessions.requireUsual(use, "shellTools")
      const shell = await Shell.open(use.live.sandbox, {
        env: environmentOf(use, env),
        ...(cwd === undefined ? {} : { cwd }),
        ...(user === undefined ? {} : { user }),
        ...(path === undefined ? {} : { shell: path }),
      })
      return { shell: shell.name, path: shell.path }
    },
    "shell.run": async ({ session, ...asked }, { signal }) =>
      ShellRun.start(await sessions.use(session, signal), asked, signal),
    "shell.close": async ({ session, shell }, { signal }) => {
      using use = await sessions.use(session, signal)
      await ask(use.live.sandbox, { op: "shell.close", shell }, z.object({}), signal)
      return { ok: true }
    },
    "shell.list": async ({ session }, { signal }) => {
      using use = await sessions.use(session, signal)
      const { processes } = await ask(use.live.sandbox, { op: "ps" }, Processes, signal)
      const shells = processes.filter(({ shell, running }) => shell !== null && running)
      return { shells: shells.map(({ shell, pid }) => ({ shell: shell ?? "", pid })) }
    },
    "port.connect": async ({ session, port }, { signal }) =>
      Port.open(await sessions.use(session, signal), port, signal),
  }
}

const Processes = z.object({ processes: z.array(InitProcess) })
/** For what is kept already to arrive, when nobody wants to wait for more. */
const settleMs = 50

function processOf({ pid, argv, running, detached, shell, startedMs, exit }: z.output<typeof InitProcess>) {
  const ended =
    exit && !running
      ? { code: null, signal: null, reason: "exit" as const, durationUs: 0, truncated: false, ...exit }
      : undefined
  return {
    pid,
    argv,
    isRunning: running,
    isDetached: detached,
    ...(shell === null ? {} : { shell }),
    startedAt: new Date(startedMs).toISOString(),
    ...(ended ? { ended: endedOf(ended as Parameters<typeof endedOf>[0]) } : {}),
  }
}

interface Reading {
  readonly after: number
  readonly limit: number
  readonly waitMs: number
  readonly signal: AbortSignal
  /** Ends the wait. */
  readonly patience: AbortController
}

async function readSome(run: Run, { after, limit, waitMs, signal, patience }: Reading) {
  const pieces: Buffer[] = []
  let bytes = 0
  let ended: z.output<typeof Ended> | undefined
  let attached = { from: after, dropped: 0, isRunning: true }
  let timer: NodeJS.Timeout | undefined
  // From when it is known what there is: a machine that is slow to say so has not said that there is nothing.
  const wait = (): void => {
    timer = setTimeout(() => patience.abort(new Fault("timeout", "it has said no more")), waitMs + settleMs)
  }
  try {
    while (bytes < limit) {
      const item = await run.next()
      if (item === undefined) break
      if (item instanceof Chunk) {
        const piece = Buffer.from(item.bytes.subarray(0, limit - bytes))
        pieces.push(piece)
        bytes += piece.length
      } else if (item.ev === "attached") {
        attached = item
        if (item.isRunning) wait()
      } else if (item.ev === "exit") ({ ...ended } = withoutName(item))
    }
  } catch (failure) {
    // The time is up, and what there is is the answer.
    if (signal.aborted) throw failure
    const { code } = Fault.from(failure)
    if (code !== "timeout" && code !== "cancelled") throw failure
  } finally {
    clearTimeout(timer)
  }
  return {
    text: Buffer.concat(pieces).toString(),
    next: attached.from + bytes,
    dropped: attached.dropped,
    isRunning: ended === undefined && attached.isRunning,
    ...(ended ? { ended } : {}),
  }
}

function withoutName<T extends { ev: string }>({ ev: _, ...rest }: T): Omit<T, "ev"> {
  return rest
}

const lineBytesMax = 64 * 1024

/** Output cut into lines; a line that never ends is cut, too. */
async function* lines(attach: () => Promise<Run>) {
  await using run = await attach()
  let rest = ""
  let seq = 0
  for (;;) {
    const item = await run.next()
    if (item === undefined) return
    if (item instanceof Chunk) {
      const all = (rest + item.bytes.toString()).split("\n")
      rest = all.pop() ?? ""
      if (rest.length > lineBytesMax) {
        all.push(rest)
        rest = ""
      }
      for (const line of all) yield { seq: ++seq, item: { line } }
    } else if (item.ev === "resync") throw new Fault("resync", `${item.dropped} bytes of output were lost`)
    else if (item.ev === "exit") {
      if (rest !== "") yield { seq: ++seq, item: { line: rest } }
      yield { seq: ++seq, item: { ended: withoutName(item) } }
    }
  }
}
