import type { Clock } from "@warren/base/clock.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { canceled, failed, type AgentAdapter, type AgentEvent, type Prompt } from "../adapter.ts"
import { ProcessGroups } from "../process-groups.ts"
import { Questions } from "../questions.ts"
import { textLines } from "../text-lines.ts"
import { scriptOf, type Step } from "./script.ts"

export interface ScriptedOptions {
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd?: string | undefined
}

/** A tool of an aborted turn is not waited for long. */
const abortGraceMs = 300
const resultCharsMax = 32 * 1024

/** An agent that does what a script says: for tests, and for the first look at Warren, which needs no key. */
export class Scripted implements AgentAdapter {
  readonly name = "scripted"
  readonly #options: ScriptedOptions
  readonly #questions = new Questions()
  readonly #groups = new ProcessGroups()
  readonly #stop = new AbortController()

  constructor(options: ScriptedOptions) {
    this.#options = options
  }

  start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    return Promise.resolve()
  }

  async *prompt(prompt: Prompt, caller: AbortSignal): AsyncGenerator<AgentEvent, void, void> {
    const signal = AbortSignal.any([caller, this.#stop.signal])
    const script = scriptOf(prompt.content)
    if ("wrong" in script) return yield failed("verdict", `that is no script: ${script.wrong}`)
    try {
      for (const [index, step] of script.steps.entries()) {
        signal.throwIfAborted()
        for await (const event of this.#perform(step, `${prompt.messageId}.${index + 1}`, signal)) {
          yield event
          if (event.type === "end") return
        }
      }
      signal.throwIfAborted()
      yield { type: "end", reason: "end_turn", ...(script.usage ? { usage: script.usage } : {}) }
    } catch (failure) {
      yield signal.aborted ? canceled : failed("verdict", messageOf(failure))
    }
  }

  answer(questionId: string, answer: string): boolean {
    return this.#questions.answer(questionId, answer)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Fault("cancelled", "the agent was stopped"))
    await this.#groups[Symbol.asyncDispose]()
  }

  async *#perform(step: Step, id: string, signal: AbortSignal): AsyncGenerator<AgentEvent, void, void> {
    if ("text" in step) yield* this.#say(step.text, step.pieces, step.delayMs, signal)
    else if ("times" in step) yield* this.#tick(step, signal)
    else if ("reasoning" in step) yield { type: "text", text: step.reasoning, part: "reasoning" }
    else if ("tool" in step) yield* this.#pretend(step, id, signal)
    else if ("run" in step) yield* this.#run(step.run, id, signal)
    else if ("question" in step) yield* this.#ask(step, id, signal)
    else if ("title" in step) yield { type: "title", title: step.title }
    else if ("fail" in step) yield failed(step.cause, step.fail)
    else if ("die" in step) process.kill(process.pid, "SIGKILL")
    if ("hang" in step || "die" in step) await never(signal)
  }

  async *#say(
    text: string,
    pieces: number,
    delayMs: number,
    signal: AbortSignal,
  ): AsyncGenerator<AgentEvent, void, void> {
    const letters = Array.from(text)
    const size = Math.max(1, Math.ceil(letters.length / pieces))
    for (let from = 0; from < letters.length; from += size) {
      signal.throwIfAborted()
      yield { type: "text", text: letters.slice(from, from + size).join("") }
      if (delayMs > 0) await this.#options.clock.sleep(delayMs, signal)
    }
  }

  /** On time, also after it was held up: so many a second are so many a second. */
  async *#tick(
    { times, everyMs, atOnce }: Extract<Step, { times: number }>,
    signal: AbortSignal,
  ): AsyncGenerator<AgentEvent, void, void> {
    const { clock } = this.#options
    const start = clock.monotonic()
    for (let n = 1; n <= times; n++) {
      signal.throwIfAborted()
      yield { type: "text", text: `${clock.now()}\n` }
      const wait = n % atOnce === 0 ? start + (n / atOnce) * everyMs - clock.monotonic() : 0
      if (wait > 0) await clock.sleep(wait, signal)
    }
  }

  async *#pretend(
    step: Extract<Step, { tool: string }>,
    callId: string,
    signal: AbortSignal,
  ): AsyncGenerator<AgentEvent, void, void> {
    const call = {
      type: "tool",
      callId,
      toolName: step.tool,
      ...(step.args === undefined ? {} : { args: step.args }),
    } as const
    yield { ...call, status: "running" }
    if (step.delayMs > 0) await this.#options.clock.sleep(step.delayMs, signal)
    if (step.error !== undefined) yield { ...call, status: "error", error: step.error }
    else yield { ...call, status: "completed", result: step.result ?? "" }
  }

  async *#run(command: string, callId: string, signal: AbortSignal): AsyncGenerator<AgentEvent, void, void> {
    const call = { type: "tool", callId, toolName: "bash", args: { command } } as const
    yield { ...call, status: "running" }
    const { env, cwd } = this.#options
    const group = await this.#groups.start({ cmd: "sh", args: ["-c", `exec 2>&1\n${command}`], env, cwd })
    const abort = (): void => void group.stop(abortGraceMs)
    signal.addEventListener("abort", abort, { once: true })
    try {
      group.stdin.end()
      let output = ""
      for await (const line of textLines(group.stdout, resultCharsMax))
        output = (output + line).slice(0, resultCharsMax)
      const { code } = await group.exited
      if (signal.aborted) yield { ...call, status: "error", error: "it was stopped", result: output }
      signal.throwIfAborted()
      if (code === 0) yield { ...call, status: "completed", result: output }
      else yield { ...call, status: "error", error: `exit ${code}`, result: output }
    } finally {
      signal.removeEventListener("abort", abort)
      await group.stop(abortGraceMs)
    }
  }

  async *#ask(
    step: Extract<Step, { question: string }>,
    questionId: string,
    signal: AbortSignal,
  ): AsyncGenerator<AgentEvent, void, void> {
    // Asked before it is told, so that no answer can come too early.
    const answer = this.#questions.ask(questionId, signal)
    answer.catch(() => undefined)
    yield { type: "question", questionId, text: step.question, options: step.options }
    yield { type: "text", text: `Answer: ${await answer}\n` }
  }
}

function never(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) return reject(signal.reason)
    signal.addEventListener("abort", () => reject(signal.reason), { once: true })
  })
}
