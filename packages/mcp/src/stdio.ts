/* oxlint-disable unicorn/prefer-add-event-listener -- what the SDK calls transports and servers are no event targets */
import { once } from "node:events"
import type { Readable, Writable } from "node:stream"
import { Fault } from "@warren/base/fault.ts"
import type { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import { mcpServer, type McpOptions } from "./server.ts"

interface Streams {
  readonly stdin: Readable
  readonly stdout: Writable
}

/** MCP on standard input and output, until the client goes away or the signal says. What it was doing ends with it. */
export async function serveStdio(
  { stdin, stdout }: Streams,
  options: Omit<McpOptions, "callerOf" | "cancelled">,
  signal: AbortSignal,
): Promise<void> {
  const { server, end } = mcpServer({ ...options, callerOf: () => ({ name: "" }) })
  const transport = new StdioServerTransport(stdin, stdout)
  const over = ended(stdin, server, signal)
  await server.connect(transport)
  await over
  await end()
}

/** What comes in without end, or with an end too far away, closes the transport by itself. */
async function ended(stdin: Readable, server: Server, signal: AbortSignal): Promise<void> {
  const closed = new Promise<void>((resolve) => (server.onclose = resolve))
  const quiet = new AbortController()
  const until = { signal: AbortSignal.any([signal, quiet.signal]) }
  try {
    await Promise.race([once(stdin, "end", until), once(stdin, "close", until), closed])
  } catch (thrown) {
    if (Fault.from(thrown).code !== "cancelled") throw thrown
  } finally {
    quiet.abort()
  }
}
