import { z } from "zod"

/** Host ↔ init, version 1. The meaning of every message is on the page `docs/internals/init-wire.md`. */
export const initVersion = 1

const Path = z.string().min(1).max(4095)
const Signal = z.string().regex(/^SIG[A-Z0-9+]{1,10}$/)
const Milliseconds = z
  .int()
  .min(0)
  .max(2 ** 31)
const Bytes = z.int().min(0)

const Environment = z.record(z.string(), z.string())
/** `user`, `root`, a name inside, or digits `uid` / `uid:gid`. */
const User = z.string().min(1).max(64)
const Window = z.object({ cols: z.int().min(1).max(1_000), rows: z.int().min(1).max(1_000) })

export const Spawn = z.object({
  op: z.literal("spawn"),
  argv: z.array(z.string()).min(1).max(4096),
  env: Environment.optional(),
  cwd: Path.optional(),
  user: User.optional(),
  pty: Window.optional(),
  stdin: z.boolean().optional(),
  timeoutMs: Milliseconds.optional(),
  graceMs: Milliseconds.optional(),
  outputBytesMax: Bytes.optional(),
  detached: z.boolean().optional(),
  hold: z.boolean().optional(),
  replayBytes: Bytes.optional(),
})

const FileOptions = { user: User.optional() }
/** Of extended attributes. Others than `user.` are the system's. */
const MarkPrefix = z
  .string()
  .regex(/^user\.[\w.-]{1,50}$/)
  .meta({ examples: ["user.e2b."] })

/** What the host asks first on a connection. */
export const InitRequest = z.discriminatedUnion("op", [
  z.object({ op: z.literal("hello") }),
  z.object({ op: z.literal("hold") }),
  Spawn,
  z.object({ op: z.literal("attach"), pid: z.int(), after: Bytes.optional(), hold: z.boolean().optional() }),
  z.object({ op: z.literal("ps") }),
  z.object({ op: z.literal("kill"), pid: z.int(), name: Signal }),
  z.object({
    op: z.literal("shell.open"),
    shell: Path.optional(),
    env: Environment.optional(),
    cwd: Path.optional(),
    user: User.optional(),
    cols: z.int().optional(),
    rows: z.int().optional(),
  }),
  z.object({
    op: z.literal("shell.run"),
    shell: z.string().max(32),
    command: z.string().optional(),
    timeoutMs: Milliseconds.optional(),
    outputBytesMax: Bytes.optional(),
  }),
  z.object({ op: z.literal("shell.close"), shell: z.string().max(32) }),
  z.object({ op: z.literal("shell.list") }),
  z.object({
    op: z.literal("file.read"),
    path: Path,
    offset: Bytes.optional(),
    limit: Bytes.optional(),
    ...FileOptions,
  }),
  z.object({
    op: z.literal("file.write"),
    path: Path,
    mode: z.int().min(0).max(0o7777).optional(),
    owner: z.string().max(32).optional(),
    parents: z.boolean().optional(),
    atomic: z.boolean().optional(),
    append: z.boolean().optional(),
    bytesMax: Bytes.optional(),
    ...FileOptions,
  }),
  z.object({
    op: z.literal("file.list"),
    path: Path,
    depth: z.int().min(1).max(64).optional(),
    limit: z.int().min(1).optional(),
    marks: MarkPrefix.optional(),
    ...FileOptions,
  }),
  z.object({
    op: z.literal("file.stat"),
    path: Path,
    follow: z.boolean().optional(),
    marks: MarkPrefix.optional(),
    ...FileOptions,
  }),
  z.object({
    op: z.literal("file.mark"),
    path: Path,
    prefix: MarkPrefix,
    values: z.record(z.string().min(1).max(190), z.string().max(4096)),
    ...FileOptions,
  }),
  z.object({
    op: z.literal("file.mkdir"),
    path: Path,
    parents: z.boolean().optional(),
    mode: z.int().min(0).max(0o7777).optional(),
    ...FileOptions,
  }),
  z.object({ op: z.literal("file.move"), from: Path, to: Path, overwrite: z.boolean().optional(), ...FileOptions }),
  z.object({ op: z.literal("file.remove"), path: Path, recursive: z.boolean().optional(), ...FileOptions }),
  z.object({ op: z.literal("file.watch"), path: Path, recursive: z.boolean().optional(), ...FileOptions }),
  z.object({ op: z.literal("connect"), port: z.int().min(1).max(65_535).optional(), path: Path.optional() }),
  z.object({ op: z.literal("usage") }),
  z.object({ op: z.literal("stop"), graceMs: Milliseconds.optional() }),
])

/** What the host may send while an operation runs; bytes travel as stream frames. */
export const InitControl = z.discriminatedUnion("op", [
  z.object({ op: z.literal("eof") }),
  z.object({ op: z.literal("resize"), ...Window.shape }),
  z.object({ op: z.literal("signal"), name: Signal }),
])

const EndReason = z.enum(["exit", "signal", "timeout", "limit", "cancelled"])
const ended = {
  code: z.int().nullable(),
  signal: z.string().max(16).nullable(),
  reason: EndReason,
  durationUs: Bytes,
  outputBytes: Bytes,
  truncated: z.boolean(),
}

export const Exit = z.object({ ev: z.literal("exit"), ...ended, usage: z.object({ cpuUs: Bytes, maxRssBytes: Bytes }) })
export const ShellDone = z.object({ ev: z.literal("done"), ...ended, cwd: z.string(), restarted: z.boolean() })

export const Entry = z.object({
  name: z.string().optional(),
  /** Instead of `name`, when the name is not UTF-8. */
  nameBase64: z.base64().optional(),
  type: z.enum(["file", "dir", "symlink", "fifo", "socket", "char", "block"]),
  size: Bytes,
  mode: z.int(),
  uid: z.int(),
  gid: z.int(),
  mtimeMs: z.int(),
  target: z.string().optional(),
  marks: z.record(z.string(), z.string()).optional(),
})

/** What init says. `ok` carries the fields of its operation. */
export const InitEvent = z.discriminatedUnion("ev", [
  z.looseObject({ ev: z.literal("ok") }),
  z.object({ ev: z.literal("fault"), code: z.string(), message: z.string(), errno: z.int().optional() }),
  z.object({ ev: z.literal("warn"), code: z.string(), message: z.string() }),
  z.object({ ev: z.literal("started"), pid: z.int() }),
  z.object({ ev: z.literal("attached"), pid: z.int(), from: Bytes, dropped: Bytes, running: z.boolean() }),
  z.object({ ev: z.literal("resync"), dropped: Bytes.optional() }),
  Exit,
  ShellDone,
  z.object({ ev: z.literal("ready") }),
  z.object({ ev: z.literal("entries"), entries: z.array(Entry) }),
  z.object({
    ev: z.literal("end"),
    bytes: Bytes.optional(),
    count: Bytes.optional(),
    truncated: z.boolean().optional(),
  }),
  z.object({
    ev: z.literal("change"),
    kind: z.enum(["create", "write", "remove", "rename", "chmod"]),
    path: z.string(),
    to: z.string().optional(),
  }),
])

export const InitHello = z.object({
  version: z.int(),
  build: z.string(),
  pid: z.int(),
  profile: z.enum(["dev", "strict"]),
  abilities: z.array(z.string()),
})

export const InitProcess = z.object({
  pid: z.int(),
  argv: z.array(z.string()),
  user: z.int(),
  detached: z.boolean(),
  shell: z.string().nullable(),
  running: z.boolean(),
  startedMs: z.int(),
  exit: Exit.partial().nullable(),
})

export const InitUsage = z.object({
  processes: z.int(),
  zombiesReaped: z.int(),
  memoryBytes: Bytes,
  cpuUs: Bytes,
  uptimeMs: Bytes,
  disk: z.object({ totalBytes: Bytes, freeBytes: Bytes }),
})
