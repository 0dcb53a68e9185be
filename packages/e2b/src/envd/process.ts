import { streamTags } from "@warren/base/frame.ts"
import { Fault } from "@warren/base/fault.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import { z } from "zod"
import { withUser, type Inside } from "./inside.ts"

const size = z.object({ cols: z.int().min(1).max(1_000), rows: z.int().min(1).max(1_000) })
const which = z.object({ pid: z.int().min(1).optional(), tag: z.string().optional() })
const bytes = z.base64().or(z.literal(""))

export const Start = z.object({
  process: z.object({
    cmd: z.string().min(1),
    args: z.array(z.string()).default([]),
    envs: z.record(z.string(), z.string()).default({}),
    cwd: z.string().optional(),
  }),
  pty: z.object({ size }).optional(),
  stdin: z.boolean().default(true),
  tag: z.string().optional(),
})
export const OnProcess = z.object({ process: which })
export const SendInput = OnProcess.extend({ input: z.object({ stdin: bytes.optional(), pty: bytes.optional() }) })
export const SendSignal = OnProcess.extend({ signal: z.enum(["SIGNAL_SIGTERM", "SIGNAL_SIGKILL"]) })
export const Update = OnProcess.extend({ pty: z.object({ size }).optional() })

/** Kept of what a program says, for those who come later. */
const replayBytes = 4 * 1024 * 1024

type On = z.output<typeof OnProcess>

/** Programs in a sandbox. Each goes on by itself: whoever started it may leave and come back. */
export const processes = {
  async *start(inside: Inside, asked: z.output<typeof Start>, timeoutMs: number): AsyncGenerator<object, void, void> {
    const pid = await started(inside, asked, timeoutMs)
    yield { event: { start: { pid } } }
    yield* output(inside, pid)
  },

  async *connect(inside: Inside, { process }: On): AsyncGenerator<object, void, void> {
    const pid = pidOf(process)
    // Asked for here, so that nothing is said about a program that nobody knows.
    await inside.plane.call("process.status", { session: inside.session, pid })
    yield { event: { start: { pid } } }
    yield* output(inside, pid)
  },

  async list({ plane, session }: Inside): Promise<object> {
    const { processes: all } = await plane.call("process.list", { session })
    const running = all.filter(({ isRunning, shell }) => isRunning && shell === undefined)
    return {
      processes: running.map(({ pid, argv: [cmd = "", ...args] }) => ({ pid, config: { cmd, args, envs: {} } })),
    }
  },

  async sendInput({ plane, session }: Inside, { process, input }: z.output<typeof SendInput>): Promise<object> {
    const text = input.stdin ?? input.pty ?? ""
    await plane.call("process.writeStdin", { session, pid: pidOf(process), text, encoding: "base64" })
    return {}
  },

  async closeStdin({ plane, session }: Inside, { process }: On): Promise<object> {
    await plane.call("process.writeStdin", { session, pid: pidOf(process), text: "", isLast: true })
    return {}
  },

  async sendSignal({ plane, session }: Inside, { process, signal }: z.output<typeof SendSignal>): Promise<object> {
    const pid = pidOf(process)
    const name = signal === "SIGNAL_SIGKILL" ? "SIGKILL" : "SIGTERM"
    const { wasRunning } = await plane.call("process.kill", { session, pid, signal: name })
    if (!wasRunning) throw unknown(pid)
    return {}
  },

  async update({ plane, session }: Inside, { process, pty }: z.output<typeof Update>): Promise<object> {
    if (pty) await plane.call("process.resize", { session, pid: pidOf(process), ...pty.size })
    return {}
  },
}

async function started(inside: Inside, asked: z.output<typeof Start>, timeoutMs: number): Promise<number> {
  const { plane, session, user } = inside
  const { cmd, args, envs, cwd } = asked.process
  const folder = cwd ? await inside.path(cwd) : await inside.folder()
  const spawn = {
    ...{
      session,
      argv: [cmd, ...args],
      env: envs,
      cwd: folder,
      user,
      stdin: asked.stdin,
      timeoutMs,
      replayBytes,
      hold: true,
    },
    ...(asked.pty ? { pty: asked.pty.size } : {}),
  }
  try {
    return (await withUser(user, plane.call("process.spawn", spawn))).pid
  } catch (thrown) {
    throw await reason(inside, folder, thrown)
  }
}

/** Init says that something is not there. Which: the folder, or the program. */
async function reason({ plane, session, user }: Inside, path: string, thrown: unknown): Promise<unknown> {
  if (!(thrown instanceof Fault) || thrown.code !== "not_found") return thrown
  const isThere = await plane.call("file.stat", { session, path, user }).then(
    () => true,
    () => false,
  )
  return isThere ? thrown : new Fault("invalid", `cwd '${path}' does not exist`, { cause: thrown })
}

const kinds: Readonly<Record<number, string>> = {
  [streamTags.stdout]: "stdout",
  [streamTags.stderr]: "stderr",
  [streamTags.raw]: "pty",
}

/** What it has said, what it says, and its end. */
async function* output({ plane, session }: Inside, pid: number): AsyncGenerator<object, void, void> {
  await using run = await plane.stream("process.attach", { session, pid, hold: true })
  for (let item = await run.next(); item !== undefined; item = await run.next()) {
    if (item instanceof Chunk) {
      yield { event: { data: { [kinds[item.tag] ?? "stdout"]: item.bytes.toString("base64") } } }
    } else if (item.ev === "exit") {
      if (item.reason === "timeout") throw new Fault("timeout", "the program ran longer than it may")
      yield { event: { end: endOf(item.exitCode, item.signal) } }
      return
    }
  }
}

function endOf(exitCode: number | null, signal: string | null): object {
  if (exitCode === 0) return { exitCode, exited: true, status: "exit status 0" }
  const error = exitCode === null ? `signal: ${signalWords[signal ?? ""] ?? signal}` : `exit status ${exitCode}`
  return { exitCode: exitCode ?? -1, exited: exitCode !== null, status: error, error }
}

const signalWords: Readonly<Record<string, string>> = {
  SIGKILL: "killed",
  SIGTERM: "terminated",
  SIGINT: "interrupt",
  SIGHUP: "hangup",
  SIGSEGV: "segmentation fault",
  SIGABRT: "aborted",
  SIGPIPE: "broken pipe",
}

function pidOf({ pid }: z.output<typeof which>): number {
  if (pid !== undefined) return pid
  throw new Fault("unsupported", "programs are found by their pid")
}

function unknown(pid: number): Fault {
  return new Fault("not_found", `process with pid ${pid} not found`)
}
