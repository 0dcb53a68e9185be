import { TextDecoder } from "node:util"
import { Fault } from "@warren/base/fault.ts"
import { Turns } from "@warren/base/turns.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import type { Ask } from "../ask.ts"
import { numberField, textField, type Fields } from "../body.ts"

export const execLimits = {
  cmdBytesMax: 1024 * 1024,
  timeoutMsMax: 600_000,
  /** Where a client says nothing. */
  timeoutMs: 120_000,
  outputBytesMax: 5 * 1024 * 1024,
} as const

export interface ExecAsked {
  readonly cmd: string
  readonly timeoutMs: number
}

export interface ExecDone {
  readonly exit_code: number
  readonly cwd: string
  readonly duration_ms: number
  readonly truncated: boolean
}

export function execAsked(fields: Fields): ExecAsked {
  const cmd = textField(fields, "cmd") ?? ""
  if (cmd === "") throw new Fault("invalid", "cmd is required")
  const bytes = Buffer.byteLength(cmd)
  if (bytes > execLimits.cmdBytesMax) {
    const hint = "use /fs/write to upload a script, then run it"
    throw new Fault("invalid", `cmd is too large (${bytes} bytes), max is ${execLimits.cmdBytesMax} bytes`, { hint })
  }
  const timeoutMs = numberField(fields, "timeout_ms", 0, execLimits.timeoutMsMax) ?? 0
  return { cmd, timeoutMs: Math.floor(timeoutMs) || execLimits.timeoutMs }
}

/** Commands in the one shell a session has for such clients: what one leaves behind, the next finds. */
export class Shells {
  /** A shell runs one command at a time; those who come meanwhile wait, as they are used to. */
  readonly #turns = new Turns()

  /** Tells the output as it comes; resolves when the command is over. */
  run(ask: Ask, session: string, asked: ExecAsked, tell: (text: string) => Promise<void>): Promise<ExecDone> {
    return this.#turns.take(session, async () => {
      const { cmd, timeoutMs } = asked
      const shell = await shellOf(ask, session)
      const input = { session, shell, cmd, timeoutMs }
      await using run = await ask.stream("shell.run", input)
      const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
      for (let item = await run.next(); item !== undefined; item = await run.next()) {
        if (item instanceof Chunk) await tell(decoder.decode(item.bytes, { stream: true }))
        else if (item.reason === "timeout") throw new Fault("timeout", `command timed out after ${timeoutMs} ms`)
        else
          return {
            exit_code: item.exitCode ?? 128,
            cwd: item.cwd,
            duration_ms: Math.round(item.durationMs),
            truncated: item.truncated,
          }
      }
      throw new Fault("unavailable", "it is not known how the command ended")
    })
  }
}

async function shellOf(ask: Ask, session: string): Promise<string> {
  const { shells } = await ask.call("shell.list", { session })
  const [known] = shells.toSorted((a, b) => a.pid - b.pid)
  return known?.shell ?? (await ask.call("shell.open", { session, cwd: "/workspace" })).shell
}
