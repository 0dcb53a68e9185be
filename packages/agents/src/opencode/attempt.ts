import type { Clock } from "@warren/base/clock.ts"
import { messageOf } from "@warren/base/fault.ts"
import { z } from "zod"
import { canceled, failed, type AgentEvent, type Prompt, type TurnEnd } from "../adapter.ts"
import type { Questions } from "../questions.ts"
import { splitModel, type OpenCodeSpec } from "./configuration.ts"
import { Messages } from "./events.ts"
import { retryFailure } from "./failure.ts"
import type { Inbox } from "../inbox.ts"
import { messageIdAt } from "./message-id.ts"
import { Requests } from "./requests.ts"
import type { OpenCodeServer, Told } from "./server.ts"
import { TurnReader } from "./turn-reader.ts"

type Event = Exclude<AgentEvent, TurnEnd>

export interface AttemptParts {
  readonly server: OpenCodeServer
  readonly session: string
  readonly spec: OpenCodeSpec
  readonly prompt: Prompt
  readonly content: string
  readonly model: string | undefined
  /** Nobody waits until OpenCode has tried again often when another model stands by. */
  readonly hasNext: boolean
  readonly questions: Questions
  readonly clock: Clock
}

/** One that does not heed an abort is ended, with everything that it runs. */
const abortMs = 2_500
/** Until OpenCode begins, no model was asked: what takes long then is the machine. */
const beginMs = 60_000
const retriesMax = 5
const lastWordsMs = 1_000
const messagesRead = 50
const Statuses = z.record(z.string(), z.object({ type: z.string() }))

/** One try of a turn with one model. */
export class Attempt {
  readonly messageId: string
  readonly #parts: AttemptParts
  readonly #reader: TurnReader
  readonly #over = new AbortController()
  /** Why it is being ended before it ends by itself. */
  #verdict: TurnEnd | undefined
  #givenUpAt = 0
  #isLost = false
  #inbox: Inbox<Told> | undefined

  constructor(parts: AttemptParts) {
    this.#parts = parts
    this.messageId = messageIdAt(parts.clock.now())
    this.#reader = new TurnReader(parts.session, this.messageId)
  }

  /** OpenCode itself is gone: that is no model's fault. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** Something was done that a second try must not do again. */
  get hasProgress(): boolean {
    return this.#reader.hasProgress
  }

  async *run(signal: AbortSignal): AsyncGenerator<Event, TurnEnd, void> {
    const { server, session, questions, prompt, spec } = this.#parts
    using inbox = server.listen(session)
    this.#inbox = inbox
    const requests = new Requests({
      ...{ server, questions, permissions: spec.permissions, messageId: `${prompt.messageId}.${this.messageId}` },
      turn: AbortSignal.any([signal, this.#over.signal]),
    })
    const abort = (): void => this.#giveUp(canceled)
    signal.addEventListener("abort", abort, { once: true })
    try {
      await this.#send()
      if (signal.aborted) abort()
      yield* this.#events(inbox, requests)
    } catch (failure) {
      await this.#broke(failure)
    } finally {
      this.#over.abort()
      signal.removeEventListener("abort", abort)
    }
    for (const event of this.#reader.leftovers()) yield event as Event
    return this.#end(inbox)
  }

  /** A request that fails is often the first sign that OpenCode has died: how it did says more. */
  async #broke(failure: unknown): Promise<void> {
    const { server, clock } = this.#parts
    const over = new AbortController()
    await Promise.race([server.ended, clock.sleep(lastWordsMs, over.signal).catch(() => undefined)])
    over.abort()
    if (!this.#inbox?.isClosed) this.#verdict ??= failed("transport", messageOf(failure))
  }

  /** As if it had not been asked: the conversation is what it was before. */
  async takeBack(server: OpenCodeServer): Promise<void> {
    const { session } = this.#parts
    for (const id of [...this.#reader.answers, this.messageId])
      await server.tell({ method: "DELETE", path: `/session/${session}/message/${id}` }).catch(() => undefined)
  }

  async #send(): Promise<void> {
    const { server, session, model, content, prompt } = this.#parts
    const files = (prompt.attachments ?? []).map(({ mime, url, filename }) => ({
      ...{ type: "file", mime, url },
      ...(filename === undefined ? {} : { filename }),
    }))
    const body = {
      messageID: this.messageId,
      ...(model === undefined ? {} : { model: splitModel(model) }),
      parts: [{ type: "text", text: content }, ...files],
    }
    await server.tell({ method: "POST", path: `/session/${session}/prompt_async`, body })
  }

  async *#events(inbox: Inbox<Told>, requests: Requests): AsyncGenerator<Event, void, void> {
    for (;;) {
      if (await this.#isLate(inbox, requests)) {
        if (await this.#hurried()) return
        continue
      }
      const told = inbox.take()
      if (told === undefined) return
      for (const event of await this.#heard(told, requests)) yield event as Event
      if (!(await this.#isOver(told))) continue
      // Its last words may be under way still, or may have been missed.
      if (!this.#reader.isComplete) for (const event of await this.#caughtUp()) yield event as Event
      return
    }
  }

  /** Waits for what comes next, as long as it may take. */
  async #isLate(inbox: Inbox<Told>, requests: Requests): Promise<boolean> {
    const { clock } = this.#parts
    const leftMs = this.#patienceMs(requests)
    if (leftMs === undefined) return inbox.filled().then(() => false)
    const patience = new AbortController()
    const late = clock.sleep(leftMs, patience.signal).then(
      () => true,
      () => false,
    )
    const isLate = await Promise.race([inbox.filled().then(() => false), late])
    patience.abort()
    return isLate
  }

  /** A tool may take its time, and so may a person. */
  #patienceMs(requests: Requests): number | undefined {
    const { clock, spec } = this.#parts
    if (this.#verdict) return Math.max(0, this.#givenUpAt + abortMs - clock.monotonic())
    if (this.#reader.isInTool || requests.areOpen) return undefined
    return this.#reader.hasBegun ? spec.silenceMs : Math.max(spec.silenceMs, beginMs)
  }

  /** True: there is nothing more to wait for. */
  async #hurried(): Promise<boolean> {
    const { server, spec } = this.#parts
    if (!this.#verdict) {
      this.#giveUp(failed("timeout", `the model said nothing for ${spec.silenceMs} ms`))
      return false
    }
    if (!this.#reader.hasBegun && (await this.#isIdle())) return true
    await server.kill()
    return true
  }

  async #heard(told: Told, requests: Requests): Promise<AgentEvent[]> {
    if (told.type === "gap") return this.#caughtUp()
    if (told.type === "permission.asked") return requests.permission(told.properties)
    if (told.type === "question.asked") return requests.question(told.properties)
    if (told.type === "wake") return []
    if (told.type === "session.status" && told.properties.sessionID === this.#parts.session)
      this.#status(told.properties.status)
    return this.#reader.read(told)
  }

  #status(status: {
    readonly type: string
    readonly attempt?: number | undefined
    readonly message?: string | undefined
  }): void {
    // It may have been told to stop before it had begun.
    if (status.type === "busy" && this.#verdict) this.#abort()
    if (status.type === "retry") this.#retried(status.attempt ?? 1, status.message ?? "")
  }

  /** OpenCode tries again for ever by itself; that is bounded here, and not waited for when there is another model. */
  #retried(attempt: number, message: string): void {
    const { cause, message: said } = retryFailure(message)
    const isEnough = attempt >= retriesMax || (this.#parts.hasNext && (cause !== "transport" || attempt > 1))
    if (isEnough) this.#giveUp(failed(cause, said))
  }

  /** An idle session is said twice after an error, and once more by the turn before: only the end of this turn counts. */
  async #isOver(told: Told): Promise<boolean> {
    if (told.type !== "session.idle" && told.type !== "gap") return false
    if (told.type === "session.idle" && told.properties.sessionID !== this.#parts.session) return false
    if (told.type === "session.idle" && this.#reader.isComplete) return true
    return this.#reader.hasBegun && (await this.#isIdle())
  }

  async #isIdle(): Promise<boolean> {
    const { server, session } = this.#parts
    const { [session]: status } = await server.ask({ method: "GET", path: "/session/status" }, Statuses)
    return status === undefined || status.type === "idle"
  }

  /** What events did not tell, the messages themselves do. */
  async #caughtUp(): Promise<AgentEvent[]> {
    const { server, session } = this.#parts
    const path = `/session/${session}/message?limit=${messagesRead}`
    const messages = await server.ask({ method: "GET", path }, Messages)
    return messages.flatMap(({ info, parts }) => this.#reader.message(info, parts))
  }

  async #end(inbox: Inbox<Told>): Promise<TurnEnd> {
    const usage = this.#reader.usage()
    this.#isLost = inbox.isClosed && !this.#verdict
    if (this.#verdict) return { ...this.#verdict, usage }
    if (this.#isLost) return failed("transport", await this.#parts.server.ended, usage)
    const { failure } = this.#reader
    if (failure) return failed(failure.cause, failure.message, usage)
    if (this.#reader.isComplete) return { type: "end", reason: "end_turn", usage }
    return failed("verdict", "it stopped by itself", usage)
  }

  /** Once; what comes after it is only waited for. */
  #giveUp(end: TurnEnd): void {
    if (this.#verdict) return
    this.#verdict = end
    this.#givenUpAt = this.#parts.clock.monotonic()
    this.#abort()
    void this.#inbox?.push({ type: "wake" })
  }

  #abort(): void {
    const { server, session } = this.#parts
    void server.tell({ method: "POST", path: `/session/${session}/abort` }).catch(() => undefined)
  }
}
