import { resolve } from "node:path"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import type { ApiSystem } from "../api/system.ts"
import { dist } from "../runner/home.ts"
import type { Told } from "./every-tool.ts"

const programs = process.env["WARREN_TEST_PROGRAMS"] ? resolve(process.env["WARREN_TEST_PROGRAMS"]) : dist
export const cli = `${programs}/cli.js`

export const kinds = ["http", "stdio", "bridge"] as const
type Kind = (typeof kinds)[number]

/** The official client, connected in one of the ways there are. */
export class McpClient implements AsyncDisposable {
  readonly client: Client
  readonly transport: Transport
  readonly called = new Set<string>()

  private constructor(client: Client, transport: Transport) {
    this.client = client
    this.transport = transport
  }

  static async open(system: ApiSystem, kind: Kind, token = system.token): Promise<McpClient> {
    const client = new Client({ name: "warren-test", version: "1" })
    const transport = kind === "http" ? httpTransport(system.url, token) : stdioTransport(system, kind, token)
    await client.connect(transport)
    return new McpClient(client, transport)
  }

  async call(name: string, args: Record<string, unknown>, options: { signal?: AbortSignal } = {}): Promise<Told> {
    this.called.add(name)
    return (await this.client.callTool({ name, arguments: args }, undefined, options)) as Told
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.transport instanceof StreamableHTTPClientTransport) await this.transport.terminateSession()
    await this.client.close()
  }
}

export function httpTransport(url: string, token: string): StreamableHTTPClientTransport {
  const headers = { authorization: `Bearer ${token}` }
  return new StreamableHTTPClientTransport(new URL("/mcp", url), { requestInit: { headers } })
}

function stdioTransport(system: ApiSystem, kind: "stdio" | "bridge", token: string): StdioClientTransport {
  const { PATH = "" } = process.env
  const here = { WARREN_HOME: system.home.path, WARREN_PORT: String(system.port) }
  const there = { WARREN_URL: system.url, WARREN_TOKEN: token }
  const env = { PATH, HOME: "/nonexistent", ...(kind === "stdio" ? here : there) }
  return new StdioClientTransport({ command: process.execPath, args: [cli, "mcp"], env })
}
