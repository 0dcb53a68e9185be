import { once } from "node:events"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface Heard {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

type Act = (response: ServerResponse, heard: Heard) => void

/** A server that does what a test tells it, one request after the other; the last thing again when there is no next. */
export class ScriptedServer implements AsyncDisposable {
  readonly heard: Heard[] = []
  readonly #server: Server
  readonly #acts: Act[]

  private constructor(acts: Act[]) {
    this.#acts = acts
    this.#server = createServer((request, response) => void this.#hear(request, response))
  }

  static async start(...acts: Act[]): Promise<ScriptedServer> {
    const scripted = new ScriptedServer(acts)
    scripted.#server.listen(0, "127.0.0.1")
    await once(scripted.#server, "listening")
    return scripted
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close")
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  async #hear(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const { method = "", url: path = "", headers } = request
    const heard = { method, path, headers, body: Buffer.concat(pieces).toString() }
    const act = this.#acts[Math.min(this.heard.length, this.#acts.length - 1)]
    this.heard.push(heard)
    act?.(response, heard)
  }
}

export function answer(status: number, body: unknown, headers: Record<string, string> = {}): Act {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers })
    response.end(typeof body === "string" ? body : JSON.stringify(body))
  }
}

/** The connection is cut without a word. */
export const hangUp: Act = (response) => response.destroy()

/** Events as they are written on the wire; then the connection stays, ends, or is cut. */
export function say(text: string, then: "stay" | "end" | "cut" = "end"): Act {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write(text, () => {
      if (then === "end") response.end()
      if (then === "cut") response.destroy()
    })
  }
}
