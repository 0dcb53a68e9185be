import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { toolLimits } from "@warren/protocol/hub/tools.ts"
import type { HubUp } from "@warren/protocol/hub/messages.ts"
import type { HubStore } from "./hub-store.ts"

type ToolCall = Extract<HubUp, { type: "tool-call" }>
type Json = ToolCall["input"]

/** Answers for one session; who asks is known by the line it came on, and never by what it says. */
export type ToolAnswerer = (session: string, tool: string, input: unknown, signal: AbortSignal) => Promise<unknown>

export interface ToolDeskParts {
  readonly session: string
  readonly store: HubStore
  readonly log: Log
  readonly tools?: ToolAnswerer | undefined
  readonly over: AbortSignal
  flush(): void
}

/** Takes what an agent asks of Warren, a few at a time, and sends the answers back on its line. */
export class ToolDesk {
  readonly #parts: ToolDeskParts
  #open = 0

  constructor(parts: ToolDeskParts) {
    this.#parts = parts
  }

  take(call: ToolCall): void {
    void this.#answer(call)
  }

  async #answer({ requestId, tool, input }: ToolCall): Promise<void> {
    const { store, session, over, log, flush } = this.#parts
    const answered = await this.#asked(tool, input)
    if (over.aborted) return
    try {
      store.transaction(() => void store.memory(session).push({ type: "tool-result", requestId, ...answered }))
      flush()
    } catch (failure) {
      // The session is gone, or nothing can be written: whoever asked waits only so long.
      log("warn", "hub.tool", { session, tool, code: Fault.from(failure).code })
    }
  }

  async #asked(
    tool: string,
    input: Json,
  ): Promise<{ out: Json } | { fault: { code: string; message: string; hint?: string } }> {
    const { tools, session, over, log } = this.#parts
    try {
      if (!tools) throw new Fault("unsupported", "there are no tools here")
      if (this.#open >= toolLimits.callsMax) throw new Fault("limit", `${toolLimits.callsMax} tools are asked already`)
      this.#open++
      try {
        const signal = AbortSignal.any([over, AbortSignal.timeout(toolLimits.callMs)])
        return { out: (await tools(session, tool, input, signal)) as Json }
      } finally {
        this.#open--
      }
    } catch (failure) {
      const fault = Fault.from(failure)
      if (fault.code === "internal") log("error", "hub.tool.bug", { session, tool, message: String(fault.cause) })
      const { code, message, hint } = fault.toData()
      return { fault: { code, message, ...(hint === undefined ? {} : { hint }) } }
    }
  }
}
