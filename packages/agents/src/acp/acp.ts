import { setTimeout as sleep } from "node:timers/promises"
import { RequestError, type PermissionOptionKind } from "@agentclientprotocol/sdk"
import { messageOf } from "@warren/base/fault.ts"
import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { canceled, failed, type AgentAdapter, type AgentEvent, type Prompt, type TurnEnd } from "../adapter.ts"
import { guidanceOf } from "../guidance.ts"
import type { Launch } from "../process-group.ts"
import { ProcessGroups } from "../process-groups.ts"
import { Questions } from "../questions.ts"
import { AcpProgram, type Told } from "./acp-program.ts"
import { AcpWords, endOf } from "./acp-words.ts"

type AcpSpec = Extract<AgentSpec, { adapter: "acp" }>
type Asked = Extract<Told, { type: "permission" }>

/** It is asked to cancel first; then it is ended with everything it runs, and another takes its place. */
const cancelMs = 2_500
const detailCharsMax = 4_096
const granted: readonly PermissionOptionKind[] = ["allow_once", "allow_always"]
const refused: readonly PermissionOptionKind[] = ["reject_once", "reject_always"]

/** Any agent that speaks the Agent Client Protocol: one program, a session of it for each channel. */
export class Acp implements AgentAdapter {
  readonly name = "acp"
  readonly #spec: AcpSpec
  readonly #cwd: string
  readonly #launch: Launch
  readonly #questions = new Questions()
  readonly #groups = new ProcessGroups()
  readonly #stop = new AbortController()
  /** Which of its sessions belongs to a channel, and in which program it was used last. */
  readonly #sessions = new Map<string, Session>()
  #program: Promise<AcpProgram> | undefined

  constructor(spec: AcpSpec, env: Readonly<Record<string, string | undefined>>, cwd: string) {
    this.#spec = spec
    this.#cwd = cwd
    this.#launch = { cmd: spec.cmd, args: spec.args, env: { ...env, ...spec.env }, cwd }
  }

  async start(signal: AbortSignal): Promise<void> {
    await this.#running(AbortSignal.any([signal, this.#stop.signal]))
  }

  async *prompt(prompt: Prompt, caller: AbortSignal): AsyncGenerator<AgentEvent, void, void> {
    const signal = AbortSignal.any([caller, this.#stop.signal])
    if (signal.aborted) return yield canceled
    const begun = performance.now()
    try {
      const program = await this.#running(this.#stop.signal)
      const session = await this.#session(program, prompt.channel)
      if (prompt.model !== undefined) await program.choose(session.id, prompt.model)
      if (signal.aborted) return yield canceled
      const end = yield* this.#turn(session, prompt, signal)
      yield { ...end, usage: { durationMs: Math.round(performance.now() - begun) } }
    } catch (failure) {
      yield signal.aborted ? canceled : failed("start", messageOf(failure))
    }
  }

  answer(questionId: string, answer: string): boolean {
    return this.#questions.answer(questionId, answer)
  }

  /** What came before one message cannot be kept alone: the channel begins anew. */
  forget(channel: string): Promise<void> {
    this.#sessions.delete(channel)
    return Promise.resolve()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#groups[Symbol.asyncDispose]()
  }

  async *#turn(session: Session, prompt: Prompt, signal: AbortSignal): AsyncGenerator<Event, TurnEnd, void> {
    const { program } = session
    // The protocol has no place for what an agent is to heed: it is said before what is said first.
    const guidance = session.hasHeard ? "" : await guidanceOf(this.#launch.env)
    session.hasHeard = true
    using inbox = program.prompt(session.id, guidance === "" ? [prompt.content] : [guidance, prompt.content])
    const over = new AbortController()
    const cancel = (): void => void this.#cancel(session, over.signal)
    signal.addEventListener("abort", cancel, { once: true })
    if (signal.aborted) cancel()
    const words = new AcpWords()
    let asked = 0
    try {
      for (;;) {
        await inbox.filled()
        const told = inbox.take()
        if (told?.type === "update") yield* eventsOf(words.read(told.update))
        else if (told?.type === "permission")
          yield* this.#permit(told, `${prompt.messageId}.p${++asked}`, AbortSignal.any([signal, over.signal]))
        else {
          yield* eventsOf(words.leftovers())
          return await ended(told, program, signal)
        }
      }
    } finally {
      over.abort()
      signal.removeEventListener("abort", cancel)
    }
  }

  *#permit(asked: Asked, questionId: string, turn: AbortSignal): Generator<Event, void, void> {
    const { toolCall, options } = asked.request
    const choose = (kinds: readonly PermissionOptionKind[]): void => {
      const option = kinds.map((kind) => options.find((one) => one.kind === kind)).find(Boolean)
      asked.reply({
        outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" },
      })
    }
    if (this.#spec.permissions !== "ask") return choose(this.#spec.permissions === "allow" ? granted : refused)
    const what = toolCall.title ?? toolCall.name ?? toolCall.kind ?? "a tool"
    const text = `May it use ${what}? ${JSON.stringify(toolCall.rawInput ?? {})}`.slice(0, detailCharsMax)
    // Asked before it is told, so that no answer can come too early.
    void this.#questions.ask(questionId, turn).then(
      (answer) => {
        const named = options.find(({ name, optionId }) => answer === name || answer === optionId)
        if (named) asked.reply({ outcome: { outcome: "selected", optionId: named.optionId } })
        else choose(answer === "allow" ? granted : refused)
      },
      () => asked.reply({ outcome: { outcome: "cancelled" } }),
    )
    yield { type: "question", questionId, text, options: ["allow", "deny", ...options.map(({ name }) => name)] }
  }

  async #cancel({ program, id }: Session, over: AbortSignal): Promise<void> {
    program.cancel(id)
    await sleep(cancelMs, undefined, { signal: over }).catch(() => undefined)
    if (!over.aborted) await program.kill()
  }

  /** One that has ended is followed by another. */
  #running(signal: AbortSignal): Promise<AcpProgram> {
    const before = this.#program
    const program = (async () => {
      const known = await before?.catch(() => undefined)
      if (known?.isRunning) return known
      await known?.ending()
      const started = await AcpProgram.start(this.#groups, this.#launch, signal)
      // What its tools still run then, nobody would ever hear of again.
      void started.ending().then(() => this.#groups.sweep())
      return started
    })()
    this.#program = program
    return program
  }

  async #session(program: AcpProgram, channel: string): Promise<Session> {
    const known = this.#sessions.get(channel)
    if (known?.program === program) return known
    const id = await program.session(this.#cwd, known?.id)
    const session = { id, program, hasHeard: id === known?.id }
    this.#sessions.set(channel, session)
    return session
  }
}

interface Session {
  readonly id: string
  readonly program: AcpProgram
  hasHeard: boolean
}

type Event = Exclude<AgentEvent, TurnEnd>

function eventsOf(events: AgentEvent[]): Event[] {
  return events.filter((event): event is Event => event.type !== "end")
}

async function ended(told: Told | undefined, program: AcpProgram, signal: AbortSignal): Promise<TurnEnd> {
  if (signal.aborted) return canceled
  if (told?.type === "failed")
    return failed(isUnauthenticated(told.failure) ? "auth" : "verdict", messageOf(told.failure))
  if (told?.type !== "stopped") return failed("transport", await program.ending())
  const end = endOf(told.response.stopReason)
  return end.reason === "canceled" ? failed("verdict", "it stopped by itself") : end
}

/** ACP's own code for an agent that nobody has logged in to. */
function isUnauthenticated(failure: unknown): boolean {
  return failure instanceof RequestError && failure.code === -32_000
}
