/* oxlint-disable unicorn/prefer-add-event-listener -- what the SDK calls transports and servers are no event targets */
import { once } from "node:events"
import type { Readable, Writable } from "node:stream"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import {
  ErrorCode,
  InitializeResultSchema,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
} from "@modelcontextprotocol/sdk/types.js"

interface Ends {
  readonly stdin: Readable
  readonly stdout: Writable
  /** Of the Warren that is asked. */
  readonly url: URL
  readonly token: string
}

/** For clients that know only standard input and output: every message to a Warren somewhere else, and back. */
export async function bridge({ stdin, stdout, url, token }: Ends, signal: AbortSignal): Promise<void> {
  const near = new StdioServerTransport(stdin, stdout)
  const headers = { authorization: `Bearer ${token}` }
  const far = new StreamableHTTPClientTransport(new URL("/mcp", url), { requestInit: { headers } })
  near.onmessage = (message) => {
    far.send(message).catch((thrown: unknown) => refuse(near, message, thrown))
  }
  far.onmessage = (message) => {
    noteVersion(far, message)
    // Nobody who reads: the end of stdin says so.
    near.send(message).catch(() => undefined)
  }
  const closed = new Promise<void>((resolve) => (near.onclose = resolve))
  const quiet = new AbortController()
  const until = { signal: AbortSignal.any([signal, quiet.signal]) }
  const over = Promise.race([once(stdin, "end", until), once(stdin, "close", until), closed])
  try {
    await far.start()
    await near.start()
    await over
  } catch (thrown) {
    if (Fault.from(thrown).code !== "cancelled") throw thrown
  } finally {
    quiet.abort()
    await far.terminateSession().catch(() => undefined)
    await far.close()
  }
}

/** A client says with each request which version was agreed on; here that is only seen to pass. */
function noteVersion(far: StreamableHTTPClientTransport, message: JSONRPCMessage): void {
  if (!isJSONRPCResultResponse(message)) return
  const greeting = InitializeResultSchema.safeParse(message.result)
  if (greeting.success) far.setProtocolVersion(greeting.data.protocolVersion)
}

/** Whoever asked hears that it did not arrive; otherwise it would wait for ever. */
function refuse(near: StdioServerTransport, message: JSONRPCMessage, thrown: unknown): void {
  if (!isJSONRPCRequest(message)) return
  const isRefused = thrown instanceof StreamableHTTPError && thrown.code === 401
  const said = isRefused ? "Warren does not take this token" : `Warren does not answer: ${messageOf(thrown)}`
  const error = { code: isRefused ? ErrorCode.InvalidRequest : ErrorCode.InternalError, message: said }
  near.send({ jsonrpc: "2.0", id: message.id, error }).catch(() => undefined)
}
