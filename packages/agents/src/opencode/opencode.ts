import { isDeepStrictEqual } from "node:util"
import type { Clock } from "@warren/base/clock.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { z } from "zod"
import { canceled, failed, type AgentAdapter, type AgentEvent, type Prompt } from "../adapter.ts"
import type { Launch } from "../process-group.ts"
import { Questions } from "../questions.ts"
import { Attempt } from "./attempt.ts"
import { ChannelBook } from "./channel-book.ts"
import { launchOf, type OpenCodeSpec, type Places } from "./configuration.ts"
import { Messages } from "./events.ts"
import { isWorthAnother } from "./failure.ts"
import { Gate } from "./gate.ts"
import { Keeper, keeperLimits, type KeeperLimits } from "./keeper.ts"
import { writeOwnFiles } from "./own-files.ts"
import type { OpenCodeServer } from "./server.ts"

export interface OpenCodeOptions {
  readonly spec: OpenCodeSpec
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
  readonly places: Places
  readonly limits?: KeeperLimits | undefined
}

const Created = z.object({ id: z.string() })
const modelsMax = 64
const stopMs = 3_500
/** To the model that takes over in the middle: what was asked is still in the conversation. */
const goOn = "The model before you could not go on. Continue with what was asked last; what has been done is done."

/** OpenCode as an agent: its server runs beside whoever drives it, and each channel is a session of it. */
export class OpenCode implements AgentAdapter {
  readonly name = "opencode"
  readonly #options: OpenCodeOptions
  readonly #questions = new Questions()
  readonly #stop = new AbortController()
  readonly #keeper: Keeper
  readonly #book: ChannelBook
  /** Turns go through together; a change of the configuration waits for them and goes alone. */
  readonly #gate = new Gate()
  #spec: OpenCodeSpec
  #models: string[]

  constructor(options: OpenCodeOptions) {
    this.#options = options
    this.#spec = options.spec
    this.#models = options.spec.models
    this.#book = new ChannelBook(`${options.places.folder}/channels.json`)
    this.#keeper = new Keeper(this.#launch(), options.clock, options.limits ?? keeperLimits)
  }

  async start(caller: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([caller, this.#stop.signal])
    await writeOwnFiles(this.#spec, this.#keeper.launch, this.#options.places.folder)
    await this.#keeper.running(signal)
  }

  async *prompt(prompt: Prompt, caller: AbortSignal): AsyncGenerator<AgentEvent, void, void> {
    const signal = AbortSignal.any([caller, this.#stop.signal])
    const begun = this.#options.clock.monotonic()
    let pass: Disposable | undefined
    try {
      pass = await this.#admitted(prompt, signal)
      for await (const event of this.#tries(prompt, this.#preferences(prompt), signal)) {
        if (event.type !== "end") yield event
        else
          yield {
            ...event,
            usage: { ...event.usage, durationMs: Math.round(this.#options.clock.monotonic() - begun) },
          }
      }
    } catch (failure) {
      yield signal.aborted ? canceled : failed("start", messageOf(failure))
    } finally {
      pass?.[Symbol.dispose]()
    }
  }

  answer(questionId: string, answer: string): boolean {
    return this.#questions.answer(questionId, answer)
  }

  async forget(channel: string, messageId: string | undefined): Promise<void> {
    const session = await this.#book.session(channel)
    if (session === undefined) return
    if (messageId === undefined) return this.#book.forget(channel)
    const from = await this.#book.cut(channel, messageId)
    if (from === undefined) return
    const server = await this.#keeper.running(this.#stop.signal)
    const messages = await server.ask({ method: "GET", path: `/session/${session}/message` }, Messages)
    for (const { info } of messages.toReversed())
      if (info.id >= from) await server.tell({ method: "DELETE", path: `/session/${session}/message/${info.id}` })
  }

  /** Restarts OpenCode when that makes a difference, between turns; its conversations go on. Says whether it did. */
  async configure(spec: AgentSpec, caller: AbortSignal): Promise<boolean> {
    if (spec.adapter !== "opencode") throw new Fault("invalid", `OpenCode cannot become ${spec.adapter}`)
    return this.#change(spec, spec.models, AbortSignal.any([caller, this.#stop.signal]))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Fault("cancelled", "the agent was stopped"))
    // Turns that are under way stop what they run; whoever does not read their end is not waited for.
    const closed = await this.#gate.close(AbortSignal.timeout(stopMs)).catch(() => undefined)
    await this.#keeper[Symbol.asyncDispose]()
    closed?.[Symbol.dispose]()
  }

  /** Inside the gate, with every model known that the prompt wants. */
  async #admitted(prompt: Prompt, signal: AbortSignal): Promise<Disposable> {
    // Refused before anything is held: what a person wrote may be no model.
    this.#preferences(prompt)
    for (;;) {
      const pass = await this.#gate.enter(signal)
      const wanted = this.#preferences(prompt).filter((model) => model !== undefined)
      const unknown = wanted.filter((model) => !this.#models.includes(model))
      if (unknown.length === 0) return pass
      pass[Symbol.dispose]()
      await this.#change(this.#spec, [...this.#models, ...unknown].slice(-modelsMax), signal)
    }
  }

  /** The models to try for a prompt, in order. Without any, the rest of its configuration says which it is. */
  #preferences({ model, modelPreferences }: Prompt): (string | undefined)[] {
    const wanted = [...(model === undefined ? [] : [model]), ...(modelPreferences ?? this.#spec.models)]
    const wrong = wanted.find((one) => !one.includes("/"))
    if (wrong !== undefined)
      throw new Fault("invalid", `"${wrong}" is no model`, { hint: "write provider/model, such as openai/gpt-5" })
    return wanted.length === 0 ? [undefined] : [...new Set(wanted)].slice(0, modelsMax)
  }

  async *#tries(
    prompt: Prompt,
    preferences: readonly (string | undefined)[],
    signal: AbortSignal,
  ): AsyncGenerator<AgentEvent, void, void> {
    let before: Attempt | undefined
    for (const [index, model] of preferences.entries()) {
      const next = preferences[index + 1]
      const server = await this.#keeper.running(signal)
      const session = await this.#session(server, prompt.channel)
      if (!before?.hasProgress) await before?.takeBack(server)
      const attempt: Attempt = new Attempt({
        ...{ server, session, prompt, model, hasNext: next !== undefined },
        content: before?.hasProgress ? goOn : prompt.content,
        ...{ spec: this.#spec, questions: this.#questions, clock: this.#options.clock },
      })
      await this.#book.note(prompt.channel, prompt.messageId, attempt.messageId)
      const end = yield* attempt.run(signal)
      const isOver = next === undefined || end.reason !== "error" || attempt.isLost || !isWorthAnother(end.cause)
      if (isOver) return yield end
      before = attempt
      yield { type: "switched", from: model ?? "", to: next, cause: end.cause ?? "verdict" }
    }
  }

  async #session(server: OpenCodeServer, channel: string): Promise<string> {
    const known = await this.#book.session(channel)
    if (known !== undefined && (await isThere(server, known))) return known
    const { id } = await server.ask({ method: "POST", path: "/session", body: {} }, Created)
    await this.#book.begin(channel, id)
    return id
  }

  async #change(spec: OpenCodeSpec, models: string[], signal: AbortSignal): Promise<boolean> {
    using _ = await this.#gate.close(signal)
    const before = { spec: this.#spec, models: this.#models }
    this.#spec = spec
    this.#models = models
    const launch = this.#launch()
    const isSame = isDeepStrictEqual(launch, this.#keeper.launch) && spec.instructions === before.spec.instructions
    if (isSame) return false
    await writeOwnFiles(spec, launch, this.#options.places.folder)
    await this.#keeper.change(launch, signal)
    return true
  }

  #launch(): Launch {
    return launchOf(this.#spec, this.#models, this.#options.env, this.#options.places)
  }
}

/** What it kept may have been lost with its folder. */
async function isThere(server: OpenCodeServer, session: string): Promise<boolean> {
  try {
    await server.tell({ method: "GET", path: `/session/${session}` })
    return true
  } catch (failure) {
    if (Fault.from(failure).code === "not_found") return false
    throw failure
  }
}
