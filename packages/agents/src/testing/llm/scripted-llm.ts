import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { chat } from "./chat.ts"
import { messages } from "./messages.ts"
import { responses } from "./responses.ts"
import { dueStep, lastOf, type Asked, type Step } from "./step.ts"
import type { Body, Wire } from "./wire.ts"

const wires: readonly Wire[] = [chat, responses, messages]

/** A model that does what it is told, behind the APIs that real ones have. */
export class ScriptedLlm implements AsyncDisposable {
  /** Everything it was asked, in order. */
  readonly asked: Asked[] = []
  readonly url: string
  readonly #server: Server
  readonly #answer: (asked: Asked) => Step

  private constructor(server: Server, answer: (asked: Asked) => Step) {
    this.#server = server
    this.#answer = answer
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on("request", (request: IncomingMessage, response: ServerResponse) => void this.#serve(request, response))
  }

  static async listen(answer: (asked: Asked) => Step = dueStep): Promise<ScriptedLlm> {
    const server = createServer().listen(0, "127.0.0.1")
    await once(server, "listening")
    return new ScriptedLlm(server, answer)
  }

  /** Turns, without the requests for titles. */
  get turns(): Asked[] {
    return this.asked.filter(({ hasTools }) => hasTools)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await read(request)
    const wire = wires.find(({ path }) => path.test(request.url?.split("?")[0] ?? ""))
    if (!wire) return json(response, request.method === "HEAD" ? 200 : 404, { error: { message: "not here" } })
    const asked: Asked = {
      ...{ wire: wire.name, model: String(body["model"]), key: keyOf(request) },
      ...lastOf(wire.said(body)),
      hasTools: Array.isArray(body["tools"]) && body["tools"].length > 0,
    }
    this.asked.push(asked)
    const step = this.#answer(asked)
    if ("hang" in step) return
    if ("status" in step) {
      const { status, message = `scripted ${status}`, headers = {} } = step
      return json(response, status, wire.failure(status, message), headers)
    }
    response.writeHead(200, { "content-type": "text/event-stream" })
    for (const event of wire.answer(step, { id: this.asked.length, model: asked.model })) {
      if (event === "cut") return void response.destroy()
      const { event: name, data } = event as { event?: string; data: unknown }
      const text = typeof data === "string" ? data : JSON.stringify(data)
      response.write(`${name === undefined ? "" : `event: ${name}\n`}data: ${text}\n\n`)
    }
    response.end()
  }
}

function json(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers })
  response.end(JSON.stringify(body))
}

function keyOf({ headers }: IncomingMessage): string {
  const apiKey = headers["x-api-key"]
  return typeof apiKey === "string" ? apiKey : (headers.authorization ?? "").replace(/^Bearer /, "")
}

async function read(request: IncomingMessage): Promise<Body> {
  let text = ""
  for await (const piece of request) text += (piece as Buffer).toString()
  try {
    return JSON.parse(text) as Body
  } catch {
    return {}
  }
}
