import { version } from "@warren/base/build-info.ts"
import { Fault } from "@warren/base/fault.ts"
import { agentTools, type ToolName } from "@warren/protocol/hub/tools.ts"
import { describeIssues } from "@warren/protocol/issues.ts"
import { McpRequest, mcpTools } from "@warren/protocol/supervisor/mcp-lines.ts"

type Id = string | number
type Answer = { readonly result: unknown } | { readonly error: { readonly code: number; readonly message: string } }

const codes = { parse: -32_700, invalid: -32_600, unknown: -32_601, parameters: -32_602, internal: -32_603 } as const
/** Those it speaks; whoever wants another is told the newest. */
const protocols = ["2025-06-18", "2025-03-26", "2024-11-05"] as const

export interface McpParts {
  ask(tool: string, input: unknown): Promise<unknown>
  send(line: string): void
}

/** The agent's tools for whoever speaks the Model Context Protocol over lines. */
export class McpServer {
  readonly #parts: McpParts
  /** Asked and not answered; what is cancelled gets no answer. */
  readonly #open = new Set<Id>()

  constructor(parts: McpParts) {
    this.#parts = parts
  }

  async hear(line: string): Promise<void> {
    const { request, problem } = read(line)
    if (!request) return this.#send(null, problem)
    const { id, method, params = {} } = request
    if (id === undefined) return this.#noted(method, params)
    this.#open.add(id)
    const answer = await this.#answer(method, params)
    if (this.#open.delete(id)) this.#send(id, answer)
  }

  #noted(method: string, params: Record<string, unknown>): void {
    const { requestId } = params
    if (method === "notifications/cancelled" && (typeof requestId === "string" || typeof requestId === "number"))
      this.#open.delete(requestId)
  }

  async #answer(method: string, params: Record<string, unknown>): Promise<Answer> {
    switch (method) {
      case "initialize": {
        const asked = protocols.find((one) => one === params["protocolVersion"])
        const serverInfo = { name: "warren", version }
        return { result: { protocolVersion: asked ?? protocols[0], capabilities: { tools: {} }, serverInfo } }
      }
      case "ping":
        return { result: {} }
      case "tools/list":
        return { result: { tools: mcpTools() } }
      case "tools/call":
        return this.#call(params)
      default:
        return { error: { code: codes.unknown, message: `there is no method ${method.slice(0, 100)}` } }
    }
  }

  async #call({ name, arguments: input = {} }: Record<string, unknown>): Promise<Answer> {
    if (typeof name !== "string" || !Object.hasOwn(agentTools, name))
      return { error: { code: codes.parameters, message: `there is no tool ${String(name).slice(0, 64)}` } }
    const checked = agentTools[name as ToolName].in.safeParse(input)
    if (!checked.success) return { error: { code: codes.parameters, message: describeIssues(checked.error) } }
    try {
      const out = await this.#parts.ask(name, checked.data)
      return { result: { content: [{ type: "text", text: JSON.stringify(out) }], structuredContent: out } }
    } catch (failure) {
      // What a tool says no to is for the agent to read; only what is no call at all is an error of the protocol.
      const { message, hint, code } = Fault.from(failure)
      const text = `${code}: ${message}${hint === undefined ? "" : ` (${hint})`}`
      return { result: { content: [{ type: "text", text }], isError: true } }
    }
  }

  #send(id: Id | null, answer: Answer): void {
    this.#parts.send(JSON.stringify({ jsonrpc: "2.0", id, ...answer }))
  }
}

function read(line: string): { request: McpRequest; problem?: never } | { request?: never; problem: Answer } {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return { problem: { error: { code: codes.parse, message: "that is not JSON" } } }
  }
  const request = McpRequest.safeParse(value)
  if (request.success) return { request: request.data }
  return { problem: { error: { code: codes.invalid, message: describeIssues(request.error) } } }
}
