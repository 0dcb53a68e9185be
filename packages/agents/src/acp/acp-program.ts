import { Writable } from "node:stream"
import {
  client,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
  type ClientConnection,
  type ContentBlock,
  type InitializeResponse,
  type NewSessionRequest,
  type NewSessionResponse,
  type PromptResponse,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { Inbox } from "../inbox.ts"
import type { Launch, ProcessGroup } from "../process-group.ts"
import type { ProcessGroups } from "../process-groups.ts"
import { toolsName, toolsServer } from "../tools-server.ts"
import { textLines } from "../text-lines.ts"

/** What a turn is told. */
export type Told =
  | { readonly type: "update"; readonly update: SessionUpdate }
  | {
      readonly type: "permission"
      readonly request: RequestPermissionRequest
      reply(response: RequestPermissionResponse): void
    }
  | { readonly type: "stopped"; readonly response: PromptResponse }
  | { readonly type: "failed"; readonly failure: unknown }

const startMs = 60_000
const messageBytesMax = 16 * 1024 * 1024
const inboxMax = 1_000
const complaintCharsMax = 4_096

/** A program that speaks the Agent Client Protocol on its standard streams. */
export class AcpProgram implements AsyncDisposable {
  readonly #group: ProcessGroup
  readonly #connection: ClientConnection
  readonly #servers: NewSessionRequest["mcpServers"]
  readonly #inboxes = new Map<string, Inbox<Told>>()
  #full: Promise<void> = Promise.resolve()
  #abilities: InitializeResponse["agentCapabilities"]
  #modelOption: string | undefined
  #complaint = ""
  /** Resolves when it has said its last: with its end, or a moment later. */
  readonly #heardOut: Promise<void>

  private constructor(group: ProcessGroup, env: Launch["env"]) {
    this.#group = group
    this.#servers = serversOf(env)
    this.#heardOut = this.#keepTail().catch(() => undefined)
    const input = ReadableStream.from(this.#heldBack())
    const output = Writable.toWeb(group.stdin) as WritableStream<Uint8Array>
    this.#connection = client({ name: "warren" })
      .onNotification(methods.client.session.update, ({ params }) =>
        this.#tell(params.sessionId, { type: "update", update: params.update }),
      )
      .onRequest(methods.client.session.requestPermission, ({ params }) => this.#permission(params))
      .connect(ndJsonStream(output, input, { maxMessageBytes: messageBytesMax }))
    // One that says nothing more is of no use, also when it lives on.
    void this.#connection.closed.then(() => group.stop())
    void group.exited.then(() => {
      this.#connection.close()
      for (const inbox of this.#inboxes.values()) inbox.close()
    })
  }

  static async start(groups: ProcessGroups, launch: Launch, signal: AbortSignal): Promise<AcpProgram> {
    const group = await groups.start(launch)
    const program = new AcpProgram(group, launch.env)
    const late = AbortSignal.any([signal, AbortSignal.timeout(startMs)])
    const abort = (): void => void group.stop(0)
    late.addEventListener("abort", abort, { once: true })
    if (late.aborted) abort()
    try {
      await program.#greet()
      return program
    } catch (failure) {
      await group.stop(0)
      signal.throwIfAborted()
      await program.#heardOut
      throw new Fault("unavailable", `it does not speak ACP: ${messageOf(failure)}${program.#complained}`)
    } finally {
      late.removeEventListener("abort", abort)
    }
  }

  get isRunning(): boolean {
    return this.#group.isRunning && !this.#connection.signal.aborted
  }

  /** How it ended, in words. */
  async ending(): Promise<string> {
    const { code, signal } = await this.#group.exited
    await this.#heardOut
    return `the program ${signal ? `was ended by ${signal}` : `ended with ${code}`}${this.#complained}`
  }

  /** The session of that id if it is still known, or a new one. */
  async session(cwd: string, known: string | undefined): Promise<string> {
    const place: NewSessionRequest = { cwd, mcpServers: this.#servers }
    if (known !== undefined && this.#abilities?.sessionCapabilities?.resume)
      return this.#connection.agent
        .request(methods.agent.session.resume, { ...place, sessionId: known })
        .then(() => known)
        .catch(() => this.session(cwd, undefined))
    // What it says again of what was said before is for nobody.
    if (known !== undefined && this.#abilities?.loadSession)
      return this.#connection.agent
        .request(methods.agent.session.load, { ...place, sessionId: known })
        .then(() => known)
        .catch(() => this.session(cwd, undefined))
    const made: NewSessionResponse = await this.#connection.agent.request(methods.agent.session.new, place)
    const { sessionId, configOptions } = made
    this.#modelOption = configOptions?.find(({ category, type }) => category === "model" && type === "select")?.id
    return sessionId
  }

  async choose(sessionId: string, model: string): Promise<void> {
    const configId = this.#modelOption
    if (configId === undefined) throw new Fault("unsupported", "it lets nobody choose its model")
    await this.#connection.agent.request(methods.agent.session.setConfigOption, { sessionId, configId, value: model })
  }

  /** A turn: told until it has stopped or failed, or until the program is gone. */
  prompt(sessionId: string, texts: readonly string[]): Inbox<Told> & Disposable {
    const inbox = new Inbox<Told>(inboxMax)
    this.#inboxes.set(sessionId, inbox)
    if (!this.isRunning) inbox.close()
    const prompt: ContentBlock[] = texts.map((text) => ({ type: "text", text }))
    void this.#connection.agent.request(methods.agent.session.prompt, { sessionId, prompt }).then(
      (response) => inbox.push({ type: "stopped", response }),
      // Anything else is the end of the connection, and so of the program.
      (failure: unknown) => (failure instanceof RequestError ? inbox.push({ type: "failed", failure }) : undefined),
    )
    return Object.assign(inbox, {
      [Symbol.dispose]: () => {
        inbox.close()
        if (this.#inboxes.get(sessionId) === inbox) this.#inboxes.delete(sessionId)
      },
    })
  }

  cancel(sessionId: string): void {
    void this.#connection.agent.notify(methods.agent.session.cancel, { sessionId }).catch(() => undefined)
  }

  async kill(): Promise<void> {
    await this.#group.stop(0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#group.stop()
  }

  async #greet(): Promise<void> {
    const { agentCapabilities, protocolVersion } = await this.#connection.agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientInfo: { name: "warren", version: "1" },
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    })
    if (protocolVersion !== PROTOCOL_VERSION)
      throw new Fault("unsupported", `it speaks version ${protocolVersion} of ACP`)
    this.#abilities = agentCapabilities
  }

  #tell(sessionId: string, told: Told): void {
    const room = this.#inboxes.get(sessionId)?.push(told)
    if (room) this.#full = Promise.all([this.#full, room]).then(() => undefined)
  }

  #permission(request: RequestPermissionRequest): Promise<RequestPermissionResponse> {
    const none = { outcome: { outcome: "cancelled" } } as const
    const inbox = this.#inboxes.get(request.sessionId)
    if (!inbox || inbox.isClosed) return Promise.resolve(none)
    return new Promise((reply) => this.#tell(request.sessionId, { type: "permission", request, reply }))
  }

  /** What it says is not read while whoever is told does not read. */
  async *#heldBack(): AsyncGenerator<Uint8Array, void, void> {
    for await (const piece of this.#group.stdout) {
      await this.#full
      yield piece as Uint8Array
    }
  }

  get #complained(): string {
    return this.#complaint.trim() === "" ? "" : `: ${this.#complaint.trim()}`
  }

  async #keepTail(): Promise<void> {
    for await (const line of textLines(this.#group.stderr, complaintCharsMax))
      this.#complaint = (this.#complaint + line).slice(-complaintCharsMax)
  }
}

function serversOf(env: Launch["env"]): NewSessionRequest["mcpServers"] {
  const server = toolsServer(env)
  if (!server) return []
  const { command, args } = server
  const variables = Object.entries(server.env).map(([name, value]) => ({ name, value }))
  return [{ name: toolsName, command, args: [...args], env: variables }]
}
