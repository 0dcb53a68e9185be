import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { z } from "zod"
import type { Context } from "../contract.ts"
import { describeIssues } from "../issues.ts"
import type { UserPlane } from "../user-plane.ts"
import type { Ops } from "./server.ts"

/**
 * The lifecycle frames of other runners' tools: `{"op":"health_check"}` and the like, without hello and without ids. They
 * are answered in the shapes those tools know, by asking our own calls.
 */

type Lifecycle = Pick<UserPlane, "health.check" | "runner.shutdown" | "logs.read">
type Health = Awaited<ReturnType<Lifecycle["health.check"]>>
type LogLine = Awaited<ReturnType<Lifecycle["logs.read"]>>["entries"][number]["entry"]

const tailMax = 1_000
/** Those tools read no longer frame than this. */
const frameBytesMax = 128 * 1024
const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const Op = z.discriminatedUnion("op", [
  z.object({ op: z.literal("health_check") }),
  z.object({ op: z.literal("shutdown_user"), payload: z.object({ user_id: z.string().max(256) }) }),
  z.object({
    op: z.literal("logs"),
    payload: z
      .object({
        role: z.enum(["runtime", "sidecar", "all"]).default("runtime"),
        stream: z.enum(["stdout", "stderr", "both"]).default("both"),
        tail: z.int().min(1).max(tailMax).default(200),
        since: z
          .string()
          .regex(/^\d{1,9}[smhd]$/, "a number and s, m, h or d")
          .or(z.iso.datetime({ offset: true }))
          .nullish(),
        format: z.enum(["text", "json"]).default("text"),
      })
      .prefault({}),
  }),
])
type LogsWish = Extract<z.output<typeof Op>, { op: "logs" }>["payload"]

type Message = Readonly<Record<string, unknown>>

const calls: ReadonlyMap<unknown, keyof Lifecycle> = new Map([
  ["health_check", "health.check"],
  ["shutdown_user", "runner.shutdown"],
  ["logs", "logs.read"],
])

/** Answers each frame with one; a refusal is one too, and nothing is thrown. */
export function opFrames(plane: Lifecycle, log: Log): Ops {
  const refuse = (thrown: unknown): object => {
    const fault = Fault.from(thrown)
    if (fault.code === "internal") {
      const stack = thrown instanceof Error ? thrown.stack : undefined
      log("error", "rpc.bug", { call: "op", message: messageOf(thrown), stack })
    }
    return refusal("internal", fault.message)
  }
  return {
    refuse,
    call: ({ op }) => calls.get(op) ?? String(op).slice(0, 64),
    answer: (message, context) => answer(message, plane, context).catch(refuse),
  }
}

async function answer(message: Message, plane: Lifecycle, context: Context): Promise<object> {
  const op = Op.safeParse(message)
  if (!op.success) return refusal("invalid_request", describeIssues(op.error))
  switch (op.data.op) {
    case "health_check":
      return { op: "health_status", payload: healthStatus(await plane["health.check"]({}, context)) }
    case "shutdown_user":
      return shutdown(op.data.payload.user_id, plane, context)
    case "logs":
      return logs(op.data.payload, plane, context)
  }
}

function refusal(code: "invalid_request" | "unknown_user" | "internal", message: string): object {
  return { op: "error", payload: { code, message } }
}

const tiers: Readonly<Record<string, string>> = { process: "process", microvm: "micro_vm" }

function healthStatus(health: Health): object {
  const { shell, browser } = health.tools
  const tier = tiers[health.driver] ?? "container"
  const isStopping = health.status === "stopping"
  const message = isStopping ? "the runner is stopping" : health.degraded.map(({ detail }) => detail).join("; ")
  return {
    user_id: health.user,
    healthy: !isStopping,
    sandbox_tier: tier,
    startup_status: {
      sandbox_tier: tier,
      sidecar_available: shell || browser,
      shell_available: shell,
      browser_available: browser,
      degraded_reasons: health.degraded.map(({ code, detail }) => ({ code, detail })),
    },
    shell_available: shell,
    browser_available: browser,
    shutdown: isStopping,
    ...(message === "" ? {} : { message }),
    runtime_pid: health.pid,
  }
}

async function shutdown(user: string, plane: Lifecycle, context: Context): Promise<object> {
  const health = await plane["health.check"]({}, context)
  // The socket is one user's; a name that is not theirs was meant for another runner.
  if (user !== health.user) return refusal("unknown_user", `this is not the runner of ${user}`)
  const { isStopping } = await plane["runner.shutdown"]({}, context)
  const payload = { user_id: user, shutdown: isStopping, already_stopped: health.status === "stopping" }
  return { op: "shutdown_status", payload }
}

async function logs(wish: LogsWish, plane: Lifecycle, context: Context): Promise<object> {
  const warnings = warningsFor(wish)
  if (warnings.length > 0) return { op: "logs", payload: { entries: [], truncated: false, warnings } }
  const { entries } = await plane["logs.read"]({ limit: tailMax }, context)
  const from = wish.since ? sinceMs(wish.since) : 0
  const wanted = entries.filter(({ entry }) => Date.parse(entry.time) >= from)
  const shown = fitting(wanted.slice(-wish.tail).map(({ entry }) => logEntry(entry, wish.format)))
  // When every line that can be asked for is wanted, there may be older ones.
  const truncated = shown.length < wanted.length || wanted.length === tailMax
  return { op: "logs", payload: { entries: shown, truncated } }
}

/** A runner has one log of its own; what is asked of another is not there, and that is said. */
function warningsFor({ role, stream }: LogsWish): string[] {
  return [
    ...(role === "sidecar" ? ["sandboxes have no log here: read the output of their processes"] : []),
    ...(stream === "stderr" ? ["the runner's log is one stream: ask for stdout or both"] : []),
  ]
}

function sinceMs(since: string): number {
  const unit = unitMs[since.at(-1) as keyof typeof unitMs]
  return unit && !since.includes("T") ? Date.now() - Number(since.slice(0, -1)) * unit : Date.parse(since)
}

function logEntry(entry: LogLine, format: "text" | "json"): object {
  const fields = Object.entries(entry.fields).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`)
  const message = format === "json" ? JSON.stringify(entry) : `${entry.level} ${entry.event}${fields.join("")}`
  return { timestamp: entry.time, source: "process_file", role: "runtime", stream: "stdout", message }
}

/** The newest that fit into a frame. */
function fitting(entries: readonly object[]): object[] {
  let bytes = JSON.stringify({ op: "logs", payload: { entries: [], truncated: false } }).length
  const from = entries.findLastIndex((entry) => (bytes += Buffer.byteLength(JSON.stringify(entry)) + 1) > frameBytesMax)
  return entries.slice(from + 1)
}
