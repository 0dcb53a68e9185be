import { setTimeout as sleep } from "node:timers/promises"
import { messageOf } from "@warren/base/fault.ts"
import type { Policy } from "@warren/protocol/hub/agent-spec.ts"
import { canceled, failed, type AgentEvent, type Prompt } from "../adapter.ts"
import type { Launch, ProcessGroup } from "../process-group.ts"
import type { ProcessGroups } from "../process-groups.ts"
import type { Questions } from "../questions.ts"
import { textLines } from "../text-lines.ts"
import { StreamJson, type Permission } from "./stream-json.ts"

/** A line is one message; images in tool results make long ones. */
const lineCharsMax = 16 * 1024 * 1024
/** It is asked to interrupt itself first; then it is ended, and goes on as another process. */
const interruptMs = 700
const abortGraceMs = 200
const complaintCharsMax = 4_096

export interface StreamJsonParts {
  launch(): Promise<Launch>
  readonly groups: ProcessGroups
  readonly permissions: Policy
  readonly questions: Questions
}

/** A program that speaks stream-json and lives on between turns: one conversation. */
export class StreamJsonProgram implements AsyncDisposable {
  readonly #launch: () => Promise<Launch>
  readonly #groups: ProcessGroups
  readonly #permissions: Policy
  readonly #questions: Questions
  readonly #words = new StreamJson()
  #running:
    | { readonly group: ProcessGroup; readonly lines: AsyncGenerator<string, void, void>; complaint: string }
    | undefined
  #asked = 0

  constructor(parts: StreamJsonParts) {
    this.#launch = () => parts.launch()
    this.#groups = parts.groups
    this.#permissions = parts.permissions
    this.#questions = parts.questions
  }

  async *turn({ content, messageId }: Prompt, signal: AbortSignal): AsyncGenerator<AgentEvent, void, void> {
    if (signal.aborted) return yield canceled
    try {
      this.#running ??= await this.#start()
    } catch (failure) {
      return yield failed("start", messageOf(failure))
    }
    const over = new AbortController()
    const interrupt = (): void => void this.#interrupt(over.signal)
    signal.addEventListener("abort", interrupt, { once: true })
    if (signal.aborted) interrupt()
    this.#words.begin()
    this.#say({ type: "user", message: { role: "user", content: [{ type: "text", text: content }] } })
    try {
      yield* this.#events(messageId, AbortSignal.any([signal, over.signal]), signal)
    } finally {
      over.abort()
      signal.removeEventListener("abort", interrupt)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const running = this.#running
    this.#running = undefined
    await running?.group.stop()
  }

  async *#events(messageId: string, turn: AbortSignal, caller: AbortSignal): AsyncGenerator<AgentEvent, void, void> {
    for (;;) {
      const { value: line, done } = (await this.#running?.lines.next()) ?? { value: undefined, done: true }
      if (done) {
        yield* this.#words.leftovers()
        return yield await this.#lost(caller)
      }
      const { events, permission } = this.#words.read(line)
      if (permission?.request.subtype === "can_use_tool") yield* this.#permit(permission, messageId, turn)
      for (const event of events) {
        if (event.type !== "end") {
          yield event
          continue
        }
        yield* this.#words.leftovers()
        // An interrupt that came too late for the turn does not make it another.
        return yield event.reason === "canceled" && !caller.aborted
          ? failed("verdict", "it stopped by itself", event.usage)
          : event
      }
    }
  }

  async #lost(caller: AbortSignal): Promise<AgentEvent> {
    const running = this.#running
    this.#running = undefined
    const exit = await running?.group.stop(0)
    if (caller.aborted) return canceled
    const how = exit?.signal ? `was ended by ${exit.signal}` : `ended with ${exit?.code ?? "nothing"}`
    return failed(
      "verdict",
      `the program ${how} in the middle of the turn${running?.complaint ? `: ${running.complaint.trim()}` : ""}`,
    )
  }

  async *#permit(
    { request_id, request }: Permission,
    messageId: string,
    turn: AbortSignal,
  ): AsyncGenerator<AgentEvent, void, void> {
    const say = (response: object): void =>
      this.#say({ type: "control_response", response: { subtype: "success", request_id, response } })
    const allow = { behavior: "allow", updatedInput: request.input ?? {} }
    if (this.#permissions === "allow") return say(allow)
    if (this.#permissions === "deny") return say({ behavior: "deny", message: "Tools that need permission are off." })
    const questionId = `${messageId}.p${++this.#asked}`
    const answer = this.#questions.ask(questionId, turn)
    const text = `May it use ${request.tool_name ?? "a tool"}? ${JSON.stringify(request.input ?? {}).slice(0, 4_096)}`
    yield { type: "question", questionId, text, options: ["allow", "deny"] }
    const said = await answer.catch(() => "deny")
    say(said === "allow" ? allow : { behavior: "deny", message: said === "deny" ? "The person said no." : said })
  }

  async #interrupt(over: AbortSignal): Promise<void> {
    const running = this.#running
    this.#say({ type: "control_request", request_id: `interrupt-${++this.#asked}`, request: { subtype: "interrupt" } })
    await sleep(interruptMs, undefined, { signal: over }).catch(() => undefined)
    if (!over.aborted) await running?.group.stop(abortGraceMs)
  }

  async #start() {
    const { sessionId } = this.#words
    // One that died, or had to be ended, goes on where it was.
    const launch = await this.#launch()
    const args = sessionId === undefined ? launch.args : [...launch.args, "--resume", sessionId]
    const group = await this.#groups.start({ ...launch, args })
    const running = { group, lines: textLines(group.stdout, lineCharsMax), complaint: "" }
    void keepTail(group, (tail) => (running.complaint = tail))
    return running
  }

  #say(message: object): void {
    this.#running?.group.stdin.write(`${JSON.stringify(message)}\n`)
  }
}

async function keepTail({ stderr }: ProcessGroup, keep: (tail: string) => void): Promise<void> {
  let tail = ""
  for await (const line of textLines(stderr, complaintCharsMax)) {
    tail = (tail + line).slice(-complaintCharsMax)
    keep(tail)
  }
}
