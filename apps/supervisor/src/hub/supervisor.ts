import { failed, type AgentAdapter, type AgentEvent, type Prompt, type TurnEnd } from "@warren/agents/adapter.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import type { Clock } from "@warren/base/clock.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Log } from "@warren/base/log.ts"
import { Turns } from "@warren/base/turns.ts"
import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { ProcessMemory } from "@warren/protocol/hub/link-memory.ts"
import { HubUp, HubDown, type ProcessTruth } from "@warren/protocol/hub/messages.ts"
import { ReliableLink } from "@warren/protocol/hub/reliable-link.ts"
import type { AgentStatus } from "@warren/protocol/hub/words.ts"
import { gathered } from "./gathered.ts"
import type { GitLook } from "./git-look.ts"
import { finalOf, toldOf } from "./turn-speaker.ts"

export type ToolAnswer = Pick<Extract<HubDown, { type: "tool-result" }>, "out" | "fault">
export type Json = Extract<HubUp, { type: "tool-call" }>["input"]

export interface SupervisorParts {
  readonly adapter: AgentAdapter
  readonly clock: Clock
  readonly log: Log
  /** Looks at what a turn does to the files. */
  readonly look: GitLook
  /** The hub says that it is over. */
  stop(): void
}

/** Drives an agent, and tells the hub everything that happens. It outlives connections, not its process. */
export class Supervisor implements AsyncDisposable {
  readonly link: ReliableLink<HubUp, HubDown>
  readonly #parts: SupervisorParts
  readonly #memory = new ProcessMemory<HubUp>()
  readonly #over = new AbortController()
  readonly #channels = new Turns()
  readonly #open = new Map<string, AbortController>()
  readonly #asked = new Map<string, (answer: ToolAnswer) => void>()
  readonly #works = new Set<Promise<void>>()
  #agent: ProcessTruth["agent"] = "none"
  #ready: Promise<void> | undefined
  #status: AgentStatus | undefined
  readonly #room = new Set<() => void>()

  constructor(parts: SupervisorParts) {
    this.#parts = parts
    this.link = new ReliableLink<HubUp, HubDown>({
      link: newId("lnk"),
      memory: this.#memory,
      vocabulary: HubDown,
      truth: () => ({ turns: [...this.#open.keys()], agent: this.#agent }),
      deliver: (message, note) => {
        note()
        this.#heard(message)
      },
      heard: ({ type, ...frame }) => {
        if (type === "resume" && this.#open.size === 0 && this.#agent === "ready")
          this.#say({ type: "agentStatus", status: "idle" })
        if (type === "refused") parts.log("error", "hub.refused", { ...frame } as Record<string, string | number>)
      },
      acknowledged: () => {
        for (const wake of this.#room) wake()
      },
    })
  }

  /** Says `idle` when it can really take a prompt. */
  async start(): Promise<void> {
    await this.#started().catch((failure: unknown) => {
      this.#say({ type: "agentStatus", status: "error", detail: messageOf(failure).slice(0, 1_024) })
    })
  }

  /** Every turn ends, and the hub is told so, if it listens. */
  async [Symbol.asyncDispose](): Promise<void> {
    const reason = new Fault("cancelled", "the supervisor was stopped")
    for (const turn of this.#open.values()) turn.abort(reason)
    await Promise.all(this.#works)
    this.#over.abort(reason)
    await this.#parts.adapter[Symbol.asyncDispose]()
  }

  /** Asks the hub for something on behalf of the agent. */
  async ask(tool: string, input: Json, signal: AbortSignal): Promise<ToolAnswer> {
    const requestId = newId("req")
    const either = AbortSignal.any([signal, this.#over.signal])
    either.throwIfAborted()
    try {
      const answered = new Promise<ToolAnswer>((resolve, reject) => {
        this.#asked.set(requestId, resolve)
        either.addEventListener("abort", () => reject(either.reason), { once: true })
      })
      answered.catch(() => undefined)
      await this.#tell({ type: "tool-call", requestId, tool, input })
      return await answered
    } finally {
      this.#asked.delete(requestId)
    }
  }

  /** Resolves when the hub has everything, or when it is not worth waiting for. */
  async delivered(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.link.isTogether && this.#memory.after(0, 1).length > 0)
      await this.#acknowledged(signal)
  }

  #heard(message: HubDown): void {
    switch (message.type) {
      case "prompt":
        return this.#prompt(message)
      case "abort":
        for (const [id, turn] of this.#open)
          if (message.messageId === undefined || message.messageId === id) turn.abort(new Fault("cancelled", "aborted"))
        return
      case "answer":
        if (!this.#parts.adapter.answer(message.questionId, message.answer))
          this.#say({ type: "error", code: "not_found", message: `nobody asks ${message.questionId} any more` })
        return
      case "revert":
        return this.#work(() => this.#forget(message.channel, message.messageId))
      case "new-session":
        return this.#work(() => this.#forget(message.channel, undefined))
      case "opencode-config":
        return this.#work(() => this.#configure(message.spec))
      case "tool-result":
        this.#asked.get(message.requestId)?.(message)
        return
      case "stop":
        return this.#parts.stop()
    }
  }

  #prompt({ type: _, ...prompt }: Extract<HubDown, { type: "prompt" }>): void {
    const turn = new AbortController()
    // From now on it is one of those it works on, also while it waits for its channel.
    this.#open.set(prompt.messageId, turn)
    failpoint("supervisor/prompted")
    this.#work(() => this.#channels.take(prompt.channel, () => this.#turn(prompt, turn.signal)))
  }

  async #turn(prompt: Prompt, signal: AbortSignal): Promise<void> {
    const turn = { turnId: newId("msg"), messageId: prompt.messageId, channel: prompt.channel }
    await this.#tell({ type: "message.create", turnId: turn.turnId, messageId: turn.messageId })
    failpoint("supervisor/created")
    this.#show("thinking")
    const seen = await this.#parts.look.begin()
    const end = await this.#events(prompt, signal, async (event) => {
      this.#show(
        event.type === "tool" && event.status !== "completed" && event.status !== "error"
          ? "tool_calling"
          : "streaming",
      )
      for (const message of toldOf(event, turn)) await this.#tell(message)
    })
    for (const message of await seen()) await this.#tell(message)
    failpoint("supervisor/ending")
    await this.#tell(finalOf(end, turn))
    failpoint("supervisor/ended")
    this.#open.delete(prompt.messageId)
    if (this.#open.size === 0) this.#show(this.#agent === "ready" ? "idle" : "error")
  }

  /** Exactly one end, whatever the adapter does. */
  async #events(
    prompt: Prompt,
    signal: AbortSignal,
    tell: (event: Exclude<AgentEvent, TurnEnd>) => Promise<void>,
  ): Promise<TurnEnd> {
    try {
      await this.#started()
      const { adapter, clock } = this.#parts
      for await (const event of gathered(adapter.prompt(prompt, signal), clock)) {
        if (event.type === "end") return event
        await tell(event)
      }
      return failed("verdict", "the agent stopped without an end")
    } catch (failure) {
      this.#parts.log("error", "turn.bug", {
        message: messageOf(failure),
        stack: failure instanceof Error ? failure.stack : undefined,
      })
      return failed(this.#agent === "failed" ? "start" : "verdict", messageOf(failure))
    }
  }

  /** Tried again with the next prompt when it failed. */
  #started(): Promise<void> {
    if (this.#agent === "failed") this.#ready = undefined
    return (this.#ready ??= this.#startAgent())
  }

  async #startAgent(): Promise<void> {
    this.#agent = "starting"
    try {
      await this.#parts.adapter.start(this.#over.signal)
      this.#agent = "ready"
      if (this.#open.size === 0) this.#show("idle")
    } catch (failure) {
      this.#agent = "failed"
      throw failure
    }
  }

  async #forget(channel: string, messageId: string | undefined): Promise<void> {
    await this.#channels.take(channel, async () => this.#parts.adapter.forget?.(channel, messageId))
  }

  async #configure(spec: AgentSpec): Promise<void> {
    try {
      const isOther = await this.#parts.adapter.configure?.(spec, this.#over.signal)
      this.#parts.log("info", "agent.configure", { restarted: isOther ?? false })
    } catch (failure) {
      // The next prompt tries it again, and says what is wrong if it still is.
      this.#say({ type: "error", code: Fault.from(failure).code, message: messageOf(failure).slice(0, 8_192) })
    }
  }

  #show(status: AgentStatus): void {
    if (this.#status === status) return
    this.#status = status
    this.#say({ type: "agentStatus", status })
  }

  /** Waits while there is no room: the agent is held back. */
  async #tell(message: HubUp): Promise<void> {
    while (this.#memory.isFull && !this.#over.signal.aborted) await this.#acknowledged(this.#over.signal)
    this.#say(message)
  }

  /** For what can be left out. */
  #say(message: HubUp): void {
    if (!this.#memory.isFull) this.link.send(message)
  }

  #acknowledged(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#room.delete(wake)
        signal.removeEventListener("abort", wake)
        resolve()
      }
      this.#room.add(wake)
      signal.addEventListener("abort", wake)
    })
  }

  #work(work: () => Promise<void>): void {
    const running = work().catch((failure: unknown) =>
      this.#parts.log("error", "supervisor.bug", { message: messageOf(failure) }),
    )
    this.#works.add(running)
    void running.finally(() => this.#works.delete(running))
  }
}
