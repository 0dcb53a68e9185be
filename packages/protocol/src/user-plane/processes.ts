import { z } from "zod"
import { contract } from "../contract.ts"
import { Environment } from "./session.ts"

const session = z
  .string()
  .min(1)
  .max(128)
  .meta({ description: "Id or name of the session.", examples: ["fix-login-bug"] })
const Path = z.string().min(1).max(4095)
const Signal = z.string().regex(/^SIG[A-Z0-9+]{1,10}$/)
const Window = z.object({ cols: z.int().min(1).max(1_000), rows: z.int().min(1).max(1_000) })

/** What is run: words, or a line for the shell. */
const command = {
  argv: z.array(z.string()).min(1).max(4096).optional(),
  cmd: z
    .string()
    .min(1)
    .max(512 * 1024)
    .optional()
    .meta({ description: "Run by `sh -c`.", examples: ["echo hello"] }),
  env: Environment.default({}),
  cwd: Path.optional(),
  user: z.string().min(1).max(64).optional().meta({ description: "`user` unless said; `root` in the profile `dev`." }),
}

const running = {
  stdin: z.boolean().default(false),
  pty: Window.optional(),
  timeoutMs: z
    .int()
    .min(0)
    .max(2 ** 31 - 1)
    .default(0),
}

export const RunControl = z
  .discriminatedUnion("op", [
    z.object({ op: z.literal("eof") }),
    z.object({ op: z.literal("resize"), ...Window.shape }),
    z.object({ op: z.literal("signal"), name: Signal }),
  ])
  .meta({ id: "RunControl" })

export const Ended = z
  .object({
    exitCode: z.int().nullable(),
    signal: z.string().nullable(),
    reason: z.enum(["exit", "signal", "timeout", "limit", "cancelled", "oom"]),
    durationMs: z.number(),
    truncated: z.boolean(),
    cpuUs: z.int().optional(),
    maxRssBytes: z.int().optional(),
  })
  .meta({ id: "Ended", description: "How a program ended." })

export const Process = z
  .object({
    pid: z.int(),
    argv: z.array(z.string()),
    isRunning: z.boolean(),
    isDetached: z.boolean(),
    shell: z.string().optional(),
    startedAt: z.iso.datetime(),
    ended: Ended.optional(),
  })
  .meta({ id: "Process" })

const RunEvent = z
  .discriminatedUnion("ev", [
    z.object({ ev: z.literal("started"), pid: z.int() }),
    z.object({ ev: z.literal("attached"), from: z.int(), dropped: z.int(), isRunning: z.boolean() }),
    z.object({ ev: z.literal("resync"), dropped: z.int() }),
    z.object({ ev: z.literal("exit"), ...Ended.shape }),
  ])
  .meta({ id: "RunEvent" })

const onProcess = { session, pid: z.coerce.number().int().min(1) }

export const processCalls = contract({
  "process.exec": {
    since: 1,
    scope: "exec",
    http: "POST /v1/sessions/{session}/exec",
    body: "result",
    doc: "Run a program and stay with it: its output as it comes, then how it ended. Leaving ends it.",
    in: z.object({
      session,
      ...command,
      ...running,
      outputBytesMax: z.int().min(0).default(0).meta({ description: "0: no limit. Over it the program is ended." }),
    }),
    up: RunControl,
    down: RunEvent,
  },
  "process.spawn": {
    since: 1,
    scope: "exec",
    http: "POST /v1/sessions/{session}/processes",
    makes: true,
    doc: "Start a program that goes on by itself; its output is kept for those who attach.",
    in: z.object({
      session,
      ...command,
      ...running,
      replayBytes: z
        .int()
        .min(0)
        .max(8 * 1024 * 1024)
        .default(1024 * 1024),
      hold: z.boolean().default(false).meta({
        description: "Until somebody attaches, it waits instead of losing what it says.",
      }),
    }),
    out: z.object({ pid: z.int() }),
  },
  "process.spawnRpc": {
    since: 1,
    scope: "exec",
    doc: "The same with a standard input that can be written to.",
    in: z.object({ session, ...command }),
    out: z.object({ pid: z.int() }),
  },
  "process.attach": {
    since: 1,
    scope: "exec",
    http: "GET /v1/sessions/{session}/processes/{pid}/attach",
    body: "result",
    doc: "What a detached program has said after byte `after`, then what it says. Leaving does not end it.",
    in: z.object({
      ...onProcess,
      after: z.coerce.number().int().min(0).default(0),
      hold: z.stringbool().or(z.boolean()).default(false).meta({
        description: "The program waits while this reader is slow, and nothing it says is lost.",
      }),
    }),
    up: RunControl,
    down: RunEvent,
  },
  "process.list": {
    since: 1,
    scope: "exec",
    http: "GET /v1/sessions/{session}/processes",
    doc: "What was started in it and is still known.",
    in: z.object({ session }),
    out: z.object({ processes: z.array(Process) }),
  },
  "process.status": {
    since: 1,
    scope: "exec",
    http: "GET /v1/sessions/{session}/processes/{pid}",
    doc: "One of them.",
    in: z.object(onProcess),
    out: Process,
  },
  "process.kill": {
    since: 1,
    scope: "exec",
    http: "POST /v1/sessions/{session}/processes/{pid}/kill",
    doc: "Send it a signal.",
    in: z.object({ ...onProcess, signal: Signal.default("SIGTERM") }),
    out: z.object({ wasRunning: z.boolean() }),
  },
  "process.writeStdin": {
    since: 1,
    scope: "exec",
    http: "POST /v1/sessions/{session}/processes/{pid}/stdin",
    doc: "Write text to its standard input.",
    in: z.object({
      ...onProcess,
      text: z.string().max(512 * 1024),
      encoding: z
        .enum(["utf8", "base64"])
        .default("utf8")
        .meta({ description: "`base64`: for bytes that are no text." }),
      isLast: z.boolean().default(false).meta({ description: "Close the input after it." }),
    }),
    out: z.object({ bytes: z.int() }),
  },
  "process.resize": {
    since: 1,
    scope: "exec",
    http: "POST /v1/sessions/{session}/processes/{pid}/resize",
    doc: "Say how large the window of its terminal is.",
    in: z.object({ ...onProcess, ...Window.shape }),
    out: z.object({ ok: z.literal(true) }),
  },
  "process.readStdout": {
    since: 1,
    scope: "exec",
    http: "GET /v1/sessions/{session}/processes/{pid}/output",
    doc: "What it has said after byte `after`; waits up to `waitMs` for the first of it.",
    in: z.object({
      ...onProcess,
      after: z.coerce.number().int().min(0).default(0),
      waitMs: z.coerce.number().int().min(0).max(25_000).default(0),
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(256 * 1024)
        .default(64 * 1024),
    }),
    out: z.object({
      text: z.string(),
      next: z.int(),
      dropped: z.int(),
      isRunning: z.boolean(),
      ended: Ended.optional(),
    }),
  },
  "process.subscribeStdout": {
    since: 1,
    scope: "exec",
    http: "GET /v1/sessions/{session}/processes/{pid}/lines",
    doc: "Its output line by line, from the oldest kept.",
    in: z.object(onProcess),
    each: z.object({ line: z.string().optional(), ended: Ended.optional() }),
  },
  "shell.open": {
    since: 1,
    scope: "exec",
    http: "POST /v1/sessions/{session}/shells",
    makes: true,
    doc: "A shell that lives between commands: folder, variables, functions and jobs stay.",
    in: z.object({
      session,
      env: Environment.default({}),
      cwd: Path.optional(),
      user: command.user,
      path: Path.optional(),
    }),
    out: z.object({ shell: z.string(), path: z.string() }),
  },
  "shell.run": {
    since: 1,
    scope: "exec",
    http: "POST /v1/sessions/{session}/shells/{shell}/run",
    body: "result",
    doc: "Run a command in a shell: its output as it comes, then how it ended.",
    in: z.object({
      session,
      shell: z.string().max(32),
      cmd: z
        .string()
        .max(512 * 1024)
        .meta({ examples: ["cd src && ls"] }),
      timeoutMs: z
        .int()
        .min(0)
        .max(2 ** 31 - 1)
        .default(0),
      outputBytesMax: z.int().min(0).default(0),
    }),
    up: z.never(),
    down: z.object({ ev: z.literal("done"), cwd: z.string(), isNew: z.boolean(), ...Ended.shape }),
  },
  "shell.close": {
    since: 1,
    scope: "exec",
    http: "DELETE /v1/sessions/{session}/shells/{shell}",
    doc: "End a shell.",
    in: z.object({ session, shell: z.string().max(32) }),
    out: z.object({ ok: z.literal(true) }),
  },
  "shell.list": {
    since: 1,
    scope: "exec",
    http: "GET /v1/sessions/{session}/shells",
    doc: "The shells of a session.",
    in: z.object({ session }),
    out: z.object({ shells: z.array(z.object({ shell: z.string(), pid: z.int() })) }),
  },
  "port.connect": {
    since: 1,
    scope: "ports",
    http: "GET /v1/sessions/{session}/ports/{port}/connect",
    body: "socket",
    doc: "Connect to what listens on a port inside.",
    in: z.object({ session, port: z.coerce.number().int().min(1).max(65_535) }),
    up: z.object({ op: z.literal("eof") }),
    down: z.object({ ev: z.literal("connected") }),
  },
})
