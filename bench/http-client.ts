import { once } from "node:events"
import { Agent, request, type IncomingMessage } from "node:http"
import type { ControlPlane } from "./control.ts"

/** Asks a control plane over one connection that stays open. */
export class HttpClient implements Disposable {
  readonly #control: ControlPlane
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1, noDelay: true })

  constructor(control: ControlPlane) {
    this.#control = control
  }

  async post<Answer>(path: string, input: object): Promise<Answer> {
    const { port, token } = this.#control
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const sending = request({ host: "127.0.0.1", port, agent: this.#agent, method: "POST", path, headers })
    sending.end(JSON.stringify(input))
    const [answer] = (await once(sending, "response")) as [IncomingMessage]
    const chunks: Buffer[] = []
    for await (const chunk of answer) chunks.push(chunk as Buffer)
    const said = Buffer.concat(chunks).toString()
    if ((answer.statusCode ?? 500) >= 300) throw new Error(`POST ${path}: ${answer.statusCode} ${said}`)
    return JSON.parse(said) as Answer
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }
}
