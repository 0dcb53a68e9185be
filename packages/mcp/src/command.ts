import type { z } from "zod"
import { Fault } from "@warren/base/fault.ts"
import type { Asked } from "@warren/protocol/contract.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"
import type { Ended } from "@warren/protocol/user-plane/processes.ts"
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js"
import { Excerpt } from "./excerpt.ts"
import { given, type Bench } from "./tool.ts"

type End = z.output<typeof Ended>

/** How often a client that asked for it hears that a command still runs. */
const tellMs = 5_000

interface Command {
  /** Of `process.spawn`. */
  readonly spawn: Omit<Asked<typeof userPlane, "process.spawn">, "replayBytes">
  /** What it reads, all of it; nothing when absent. */
  readonly input?: string
  /** How long the call waits: what takes longer goes on by itself. */
  readonly waitMs: number
  readonly outputBytesMax: number
}

/**
 * Runs a command as a process that lives by itself, and stays with it: so what is not shown of its output can still be
 * read, and what takes longer than a client waits is not lost. A cancelled call ends it.
 */
export async function runCommand(command: Command, bench: Bench): Promise<CallToolResult> {
  const { session } = command.spawn
  const { asking } = bench
  // Not cancelled half-way: then nobody would know which process to end.
  const { pid } = await asking.anyway().call("process.spawn", { ...command.spawn, stdin: command.input !== undefined })
  try {
    asking.signal.throwIfAborted()
    if (command.input !== undefined) {
      await asking.call("process.writeStdin", { session, pid, text: command.input, isLast: true }).catch(unread)
    }
    return await stay({ ...command, session, pid }, bench)
  } catch (thrown) {
    if (asking.signal.aborted) await asking.anyway().call("process.kill", { session, pid, signal: "SIGKILL" })
    throw thrown
  }
}

/** It ended without reading what it was given. That is its own business. */
function unread(thrown: unknown): void {
  const { code } = Fault.from(thrown)
  if (code !== "conflict" && code !== "not_found") throw thrown
}

interface Process {
  readonly session: string
  readonly pid: number
  readonly waitMs: number
  readonly outputBytesMax: number
}

async function stay(process: Process, bench: Bench): Promise<CallToolResult> {
  const output = new Excerpt(process.outputBytesMax)
  const telling = setInterval(() => bench.progress(`${output.bytes} bytes of output so far`), tellMs)
  const patience = new AbortController()
  const timer = setTimeout(() => patience.abort(new Fault("timeout", "it goes on")), process.waitMs)
  try {
    const asking = bench.asking.until(AbortSignal.any([bench.asking.signal, patience.signal]))
    await using run = await asking.stream("process.attach", { session: process.session, pid: process.pid })
    for (let item = await run.next(); item !== undefined; item = await run.next()) {
      if (item instanceof Chunk) output.add(item.bytes)
      else if (item.ev === "exit") return resultOf(process, output, item)
    }
    throw new Fault("unavailable", "it is not known how it ended", { hint: `ask with read_output, pid ${process.pid}` })
  } catch (thrown) {
    if (bench.asking.signal.aborted || !patience.signal.aborted) throw thrown
    return resultOf(process, output, undefined)
  } finally {
    clearInterval(telling)
    clearTimeout(timer)
  }
}

function resultOf({ session, pid }: Process, output: Excerpt, end: End | undefined): CallToolResult {
  const after = output.headBytes
  const pointer = JSON.stringify({ session, pid, after })
  const shown = output.text(`[${output.left} bytes are left out here: read_output ${pointer}]`)
  const state = {
    pid,
    isRunning: end === undefined,
    ...(end && given({ exitCode: end.exitCode, signal: end.signal, reason: end.reason, durationMs: end.durationMs })),
    outputBytes: output.bytes,
    ...(output.left > 0 ? { leftOut: { bytes: output.left, after } } : {}),
  }
  const said = end
    ? howItEnded(end)
    : `It still runs: read_output ${JSON.stringify({ session, pid, after: output.bytes })}`
  return {
    content: [
      { type: "text", text: shown === "" ? "(no output)" : shown },
      { type: "text", text: said },
    ],
    structuredContent: { ...state, output: shown },
  }
}

/** One line for whoever reads the text. */
export function howItEnded({ exitCode, signal, reason, durationMs }: End): string {
  const how = exitCode === null ? `ended by ${signal ?? "a signal"}` : `exit code ${exitCode}`
  return `[${how}${reason === "exit" || reason === "signal" ? "" : ` (${reason})`}, ${Math.round(durationMs)} ms]`
}
