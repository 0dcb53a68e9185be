import { setTimeout as sleep } from "node:timers/promises"
import { version } from "@warren/base/build-info.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Caller } from "@warren/protocol/contract.ts"
import type { UserPlane } from "@warren/protocol/user-plane.ts"
import type { AuthInfo } from "@modelcontextprotocol/sdk/server/auth/types.js"
import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js"
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  ErrorCode,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  type CallToolResult,
  type ServerNotification,
  type ServerRequest,
} from "@modelcontextprotocol/sdk/types.js"
import { Asking } from "./asking.ts"
import { listResources, readResource, resourceTemplates } from "./resources.ts"
import { failure, type Bench } from "./tool.ts"
import { tools } from "./tools.ts"

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>

export interface McpOptions {
  readonly plane: UserPlane
  readonly log: Log
  /** Who asks, from what the transport knows of it. */
  callerOf(auth: AuthInfo | undefined): Caller
  /** Where a path of the gateway is found; undefined where nobody has said. */
  urlOf(path: string): string | undefined
  /** A request was cancelled by the client: it gets no answer. */
  cancelled?(id: string | number): void
}

const instructions = `Warren gives you private Linux sandboxes, called sessions. Create one with create_session (or find one
with list_sessions), name it in every other call, and delete it when it is no longer needed. Files of a session outlive
its programs; hibernate what is only needed later. Long output is cut: the answer says how to read the rest.`

export interface McpServer {
  readonly server: Server
  /** Ends the conversation and what it was doing; resolves when that has stopped, or had time enough to. */
  end(): Promise<void>
}

/** What was cancelled is ended inside the session, which takes a moment. */
const endMs = 5_000

/** One conversation with an MCP client. */
export function mcpServer(options: McpOptions): McpServer {
  const running = new Set<Promise<unknown>>()
  const capabilities = { tools: {}, resources: {}, completions: {} }
  const server = new Server({ name: "warren", title: "Warren", version }, { capabilities, instructions })
  const asking = ({ authInfo, signal }: Extra): Asking =>
    new Asking(options.plane, options.callerOf(authInfo), knownReason(signal))
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: tools.map(({ run: _, ...tool }) => tool) }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => {
    extra.signal.addEventListener("abort", () => options.cancelled?.(extra.requestId), { once: true })
    const bench: Bench = { asking: asking(extra), urlOf: options.urlOf, progress: progressOf(extra) }
    const called = callTool(params.name, params.arguments, bench, options.log)
    running.add(called)
    const over = (): boolean => running.delete(called)
    called.then(over, over)
    return called
  })
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates }))
  server.setRequestHandler(ListResourcesRequestSchema, ({ params }, extra) =>
    listResources(asking(extra), params?.cursor).catch(asProtocolError(options.log)),
  )
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }, extra) =>
    readResource(asking(extra), params.uri).catch(asProtocolError(options.log)),
  )
  server.setRequestHandler(CompleteRequestSchema, ({ params: { argument } }, extra) =>
    completed(asking(extra), argument).catch(asProtocolError(options.log)),
  )
  return {
    server,
    async end() {
      await server.close()
      const patience = new AbortController()
      const enough = sleep(endMs, undefined, { signal: patience.signal }).catch(() => undefined)
      await Promise.race([Promise.allSettled(running), enough])
      patience.abort()
    },
  }
}

/** A name that is none is the client's mistake; everything else that fails is told to whoever uses the tool. */
async function callTool(name: string, given: unknown, bench: Bench, log: Log): Promise<CallToolResult> {
  const tool = tools.find((one) => one.name === name)
  if (!tool) throw new McpError(ErrorCode.InvalidParams, `Unknown tool: ${name.slice(0, 128)}`)
  try {
    return await tool.run(given, bench)
  } catch (thrown) {
    const fault = Fault.from(thrown)
    if (fault.code === "internal") logBug(log, name, thrown)
    return failure(fault)
  }
}

/** Names of sessions: the only thing in a template that there is a list of. */
async function completed(asking: Asking, argument: { name: string; value: string }) {
  if (argument.name !== "session") return { completion: { values: [] } }
  const { items, nextCursor } = await asking.call("session.list", { limit: 200 })
  const values = items.map(({ name }) => name).filter((name) => name.startsWith(argument.value))
  return { completion: { values: values.slice(0, 100), hasMore: values.length > 100 || nextCursor !== undefined } }
}

const resourceNotFound = -32_002

function asProtocolError(log: Log): (thrown: unknown) => never {
  return (thrown) => {
    const fault = Fault.from(thrown)
    if (fault.code === "internal") logBug(log, "resource", thrown)
    const code = { not_found: resourceNotFound, invalid: ErrorCode.InvalidParams }[fault.code as "invalid"]
    throw new McpError(code ?? ErrorCode.InternalError, fault.message, fault.toData())
  }
}

function logBug(log: Log, about: string, thrown: unknown): void {
  const stack = thrown instanceof Error ? thrown.stack : undefined
  log("error", "mcp.bug", { about, message: messageOf(thrown), stack })
}

/** What a client gives as a reason is a text, which would look like a bug of ours. */
function knownReason(cancelled: AbortSignal): AbortSignal {
  const controller = new AbortController()
  const abort = (): void => controller.abort(new Fault("cancelled", "the call was cancelled"))
  if (cancelled.aborted) abort()
  else cancelled.addEventListener("abort", abort, { once: true })
  return controller.signal
}

function progressOf({ _meta, sendNotification }: Extra): Bench["progress"] {
  const progressToken = _meta?.progressToken
  let progress = 0
  return (message) => {
    if (progressToken === undefined) return
    const told = { method: "notifications/progress" as const, params: { progressToken, progress: ++progress, message } }
    // A client that has gone needs no news.
    sendNotification(told).catch(() => undefined)
  }
}
