import { ProcessGroup, type Launch } from "@warren/agents/process-group.ts"
import { textLines } from "@warren/agents/text-lines.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { describeIssues } from "@warren/protocol/issues.ts"
import { StdioCommand, stdioLimits, type StdioEvent } from "@warren/protocol/supervisor/lines.ts"
import type { Account } from "./account.ts"
import { checkout } from "./checkout.ts"
import { exec } from "./exec.ts"

export interface StdioOptions {
  readonly cmd: string
  readonly args: readonly string[]
  readonly account?: Account | undefined
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  /** Resolves when it was written: a host that does not read holds the agent back. */
  emit(event: StdioEvent): Promise<void>
}

type Start = Extract<StdioCommand, { cmd: "start" }>
type Exited = Omit<Extract<StdioEvent, { ev: "agent:exit" }>, "ev">
interface Agent {
  readonly stop: AbortController
  readonly over: Promise<void>
  group?: ProcessGroup
}

/** Seed 001's supervisor: one agent at a time, told what to do in lines. Nothing it does keeps it from hearing the next line. */
export class StdioMode implements AsyncDisposable {
  readonly #options: StdioOptions
  readonly #over = new AbortController()
  readonly #execs = new Set<Promise<void>>()
  #agent: Agent | undefined
  /** Said before there was anybody to say it to. */
  #waiting: string[] = []

  constructor(options: StdioOptions) {
    this.#options = options
  }

  async hear(line: string): Promise<void> {
    if (line.trim() === "") return
    const command = parsed(line)
    if (!command.ok)
      return this.#options.emit({ ev: "error", cmd: command.cmd, code: "invalid", message: command.message })
    try {
      this.#do(command.data)
    } catch (failure) {
      const { code, message } = Fault.from(failure)
      await this.#options.emit({ ev: "error", cmd: command.data.cmd, code, message })
    }
  }

  /** What runs is stopped, and that is told. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort(new Fault("cancelled", "the supervisor was stopped"))
    this.#agent?.stop.abort()
    await this.#agent?.over
    await Promise.all(this.#execs)
  }

  #do(command: StdioCommand): void {
    switch (command.cmd) {
      case "start":
        return this.#start(command)
      case "chat":
        return this.#chat(command.text)
      case "stop":
        if (!this.#agent) throw new Fault("conflict", "no agent runs")
        return this.#agent.stop.abort()
      case "exec":
        return this.#exec(command)
    }
  }

  #start(start: Start): void {
    if (this.#agent) throw new Fault("conflict", "an agent runs already", { hint: "stop it first" })
    const stop = new AbortController()
    let begin = (): void => undefined
    const agent: Agent = {
      stop,
      over: new Promise<void>((resolve) => (begin = resolve)).then(() => this.#run(start, agent)),
    }
    this.#agent = agent
    begin()
  }

  async #run(start: Start, agent: Agent): Promise<void> {
    const exited = await this.#live(start, agent)
    // Free for the next before it is told, so that who hears it can start at once.
    this.#agent = undefined
    await this.#options.emit({ ev: "agent:exit", ...exited })
  }

  async #live(start: Start, agent: Agent): Promise<Exited> {
    const { signal } = agent.stop
    const none = { code: null, signal: null }
    let step: "clone" | "start" = "clone"
    try {
      if (start.repo !== undefined) await this.#checkout(start.repo, start.branch, signal)
      signal.throwIfAborted()
      step = "start"
      agent.group = await ProcessGroup.start({
        ...this.#common(),
        cmd: this.#options.cmd,
        args: this.#arguments(start),
      })
    } catch (failure) {
      return { ...none, reason: signal.aborted ? "stopped" : step, message: messageOf(failure) }
    }
    return this.#attend(agent.group, signal)
  }

  async #attend(group: ProcessGroup, signal: AbortSignal): Promise<Exited> {
    const abort = (): void => void group.stop(stdioLimits.stopGraceMs)
    signal.addEventListener("abort", abort, { once: true })
    if (signal.aborted) abort()
    await this.#options.emit({ ev: "agent:started", pid: group.pid })
    for (const text of this.#waiting.splice(0)) group.stdin.write(`${text}\n`)
    await Promise.all([this.#forward(group.stdout, "agent:stdout"), this.#forward(group.stderr, "agent:stderr")])
    const exit = await group.exited
    signal.removeEventListener("abort", abort)
    return { ...exit, reason: signal.aborted ? "stopped" : exit.signal === null ? "exit" : "signal" }
  }

  async #forward(stream: ProcessGroup["stdout"], ev: "agent:stdout" | "agent:stderr"): Promise<void> {
    for await (const data of textLines(stream, stdioLimits.pieceBytesMax)) await this.#options.emit({ ev, data })
  }

  #chat(text: string): void {
    const group = this.#agent?.group
    if (group?.isRunning) return void group.stdin.write(`${text}\n`)
    if (this.#waiting.length >= stdioLimits.chatsWaitingMax)
      throw new Fault("limit", "too much waits for an agent to start")
    this.#waiting.push(text)
  }

  #exec(command: Extract<StdioCommand, { cmd: "exec" }>): void {
    if (this.#execs.size >= stdioLimits.execsMax)
      throw new Fault("limit", `${stdioLimits.execsMax} commands run already`)
    const work = exec(command, this.#common(), this.#over.signal).then((result) => this.#options.emit(result))
    this.#execs.add(work)
    void work.finally(() => this.#execs.delete(work))
  }

  async #checkout(repo: string, branch: string | undefined, signal: AbortSignal): Promise<void> {
    const { folder } = this.#options
    const { env, uid, gid } = this.#common()
    await checkout({ repo, branch, folder, env, who: { uid, gid } }, signal)
  }

  #arguments({ prompt, agent_config: config }: Start): string[] {
    const { model, allowed_tools: allowed, disallowed_tools: disallowed, max_turns: turns } = config ?? {}
    const wished = [
      ...(model === undefined ? [] : ["--model", model]),
      ...(allowed === undefined ? [] : ["--allowedTools", allowed.join(",")]),
      ...(disallowed === undefined ? [] : ["--disallowedTools", disallowed.join(",")]),
      ...(turns === undefined ? [] : ["--max-turns", String(turns)]),
    ]
    return [...this.#options.args, ...wished, ...(prompt === "" ? [] : [prompt])]
  }

  #common(): Pick<Launch, "env" | "cwd" | "uid" | "gid"> {
    const { account, env, folder } = this.#options
    if (!account) return { env, cwd: folder }
    return { env: { ...env, HOME: account.home }, cwd: folder, uid: account.uid, gid: account.gid }
  }
}

type Parsed =
  | { readonly ok: true; readonly data: StdioCommand }
  | { readonly ok: false; readonly cmd: string | null; readonly message: string }

function parsed(line: string): Parsed {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return { ok: false, cmd: null, message: "that is not JSON" }
  }
  const command = StdioCommand.safeParse(value)
  if (command.success) return { ok: true, data: command.data }
  const cmd = (value as { cmd?: unknown } | null)?.cmd
  return { ok: false, cmd: typeof cmd === "string" ? cmd.slice(0, 64) : null, message: describeIssues(command.error) }
}
