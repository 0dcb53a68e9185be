import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import type { AgentAdapter, AgentEvent, Prompt } from "../adapter.ts"
import type { Launch } from "../process-group.ts"
import { ProcessGroups } from "../process-groups.ts"
import { Questions } from "../questions.ts"
import { claudeCode } from "./claude-code.ts"
import { linesTurn } from "./lines.ts"
import { StreamJsonProgram } from "./stream-json-program.ts"

type CommandSpec = Extract<AgentSpec, { adapter: "command" }>

/** Any program as an agent. */
export class Command implements AgentAdapter {
  readonly name = "command"
  readonly #spec: CommandSpec
  readonly #launch: Launch
  readonly #questions = new Questions()
  readonly #groups = new ProcessGroups()
  /** Each channel has a conversation of its own. */
  readonly #programs = new Map<string, StreamJsonProgram>()
  readonly #stop = new AbortController()

  constructor(spec: CommandSpec, env: Readonly<Record<string, string | undefined>>, cwd?: string) {
    this.#spec = spec
    this.#launch = { cmd: spec.cmd, args: spec.args, env: { ...env, ...spec.env }, cwd: spec.cwd ?? cwd }
  }

  /** Programs are started when they are needed. */
  start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    return Promise.resolve()
  }

  async *prompt(prompt: Prompt, caller: AbortSignal): AsyncGenerator<AgentEvent, void, void> {
    const signal = AbortSignal.any([caller, this.#stop.signal])
    if (this.#spec.speaks === "lines") yield* linesTurn(this.#groups, this.#launch, prompt, signal)
    else yield* this.#program(prompt.channel).turn(prompt, signal)
  }

  answer(questionId: string, answer: string): boolean {
    return this.#questions.answer(questionId, answer)
  }

  /** A program of lines remembers nothing; one that speaks stream-json begins anew. What came before one message cannot be kept alone. */
  async forget(channel: string): Promise<void> {
    const program = this.#programs.get(channel)
    this.#programs.delete(channel)
    await program?.[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    this.#programs.clear()
    await this.#groups[Symbol.asyncDispose]()
  }

  #program(channel: string): StreamJsonProgram {
    const known = this.#programs.get(channel)
    if (known) return known
    const made = new StreamJsonProgram({
      launch: async () => (this.#spec.speaks === "claude" ? claudeCode(this.#launch) : this.#launch),
      groups: this.#groups,
      ...{ permissions: this.#spec.permissions, questions: this.#questions },
    })
    this.#programs.set(channel, made)
    return made
  }
}
