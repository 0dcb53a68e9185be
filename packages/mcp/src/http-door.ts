/* oxlint-disable unicorn/prefer-add-event-listener -- what the SDK calls transports and servers are no event targets */
import { randomUUID } from "node:crypto"
import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Caller } from "@warren/protocol/contract.ts"
import { WebStandardStreamableHTTPServerTransport as Transport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js"
import { mcpServer, type McpOptions } from "./server.ts"

export const httpDoorLimits = {
  /** Conversations one token or sign-in may have; the one that was quiet for longest goes. */
  perOwnerMax: 32,
  allMax: 2_000,
  /** Quiet for this long, one is over; its client begins a new one by itself. */
  idleMs: 24 * 3600_000,
  sweepMs: 60_000,
  bodyBytesMax: 4 * 1024 * 1024,
} as const

export interface Guest {
  /** Whose it is: nobody else can go on with a conversation, whatever they know of it. */
  readonly owner: string
  readonly caller: Caller
}

interface Talk {
  readonly owner: string
  readonly transport: Transport
  end(): Promise<void>
  usedAt: number
}

type Options = Omit<McpOptions, "callerOf" | "cancelled"> & { readonly clock: Clock }

/** MCP over HTTP ("streamable HTTP"): many conversations, each its owner's alone. */
export class HttpDoor implements AsyncDisposable {
  readonly #options: Options
  readonly #talks = new Map<string, Talk>()
  readonly #timer: NodeJS.Timeout
  #isClosed = false

  constructor(options: Options) {
    this.#options = options
    this.#timer = setInterval(() => this.#sweep(), httpDoorLimits.sweepMs)
    this.#timer.unref()
  }

  get talks(): number {
    return this.#talks.size
  }

  async answer(request: Request, guest: Guest): Promise<Response> {
    if (this.#isClosed) throw new Fault("unavailable", "Warren is stopping")
    const id = request.headers.get("mcp-session-id")
    const talk = id === null ? await this.#begin(guest.owner) : this.#talks.get(id)
    if (!talk || talk.owner !== guest.owner) return notFound()
    talk.usedAt = this.#options.clock.monotonic()
    const authInfo = { token: "", clientId: guest.owner, scopes: [], extra: { caller: guest.caller } }
    const response = await talk.transport.handleRequest(request, { authInfo })
    // What did not begin with a greeting is no conversation.
    if (talk.transport.sessionId === undefined) await talk.end()
    return response
  }

  /** Every conversation ends, and what it was doing with it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    await Promise.all([...this.#talks.values()].map((talk) => talk.end()))
  }

  async #begin(owner: string): Promise<Talk> {
    const transport = new Transport({
      sessionIdGenerator: randomUUID,
      maxRequestBodySize: httpDoorLimits.bodyBytesMax,
      onsessioninitialized: (id) => this.#add(id, talk),
    })
    const { server, end } = mcpServer({
      ...this.#options,
      callerOf: callerIn,
      // Nothing is answered to it any more: a stream that stayed open would be waited on for nothing.
      cancelled: (id) => transport.closeSSEStream(id),
    })
    const talk: Talk = { owner, transport, end, usedAt: this.#options.clock.monotonic() }
    server.onclose = () => {
      if (transport.sessionId !== undefined) this.#talks.delete(transport.sessionId)
    }
    await server.connect(transport)
    return talk
  }

  #add(id: string, talk: Talk): void {
    const mine = [...this.#talks.values()].filter(({ owner }) => owner === talk.owner)
    if (mine.length >= httpDoorLimits.perOwnerMax) void quietest(mine)?.end()
    if (this.#talks.size >= httpDoorLimits.allMax) void quietest([...this.#talks.values()])?.end()
    this.#talks.set(id, talk)
  }

  #sweep(): void {
    const oldest = this.#options.clock.monotonic() - httpDoorLimits.idleMs
    for (const talk of this.#talks.values()) if (talk.usedAt < oldest) void talk.end()
  }
}

function quietest(talks: readonly Talk[]): Talk | undefined {
  return talks.toSorted((a, b) => a.usedAt - b.usedAt)[0]
}

const callerIn: McpOptions["callerOf"] = (auth) => {
  const caller = auth?.extra?.["caller"]
  if (caller === undefined) throw new Fault("internal", "a call came in past the door")
  return caller as Caller
}

/** As the specification says: the client then begins anew. */
function notFound(): Response {
  const body = { jsonrpc: "2.0", error: { code: -32_001, message: "Session not found" }, id: null }
  return Response.json(body, { status: 404 })
}
