import { Agent, request as httpRequest, type IncomingMessage } from "node:http"
import type { FuzzedRequest } from "./fuzzed-request.ts"

export interface Answer {
  readonly status: number
  readonly type: string
  /** The beginning of it: of what does not end, only that it began. */
  readonly body: string
}

const bodyCharsMax = 100_000
/** An answer has to begin within this; one that begins later is as good as none. */
const patienceMs = 70_000

/** Sends requests as they are: nothing is put right on the way. */
export class Asker implements AsyncDisposable {
  readonly #url: URL
  readonly #agent: Agent

  constructor(url: string, atOnce: number) {
    this.#url = new URL(url)
    this.#agent = new Agent({ keepAlive: true, maxSockets: atOnce })
  }

  ask({ method, path, headers, body }: FuzzedRequest, token: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const authorization = token === "" ? {} : { authorization: `Bearer ${token}` }
      const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }
      const asked = httpRequest({
        ...{ host: this.#url.hostname, port: this.#url.port, agent: this.#agent, method, path, timeout: patienceMs },
        headers: { ...authorization, ...length, ...latin(headers) },
      })
      asked.on("response", (answer) => void readStart(answer).then(resolve, reject))
      asked.on("upgrade", (answer, socket) => {
        socket.destroy()
        resolve({ status: answer.statusCode ?? 0, type: "", body: "" })
      })
      asked.on("timeout", () => asked.destroy(new Error(`no answer: ${method} ${path} ${JSON.stringify(headers)}`)))
      asked.on("error", (failure: NodeJS.ErrnoException) => {
        // A body that is refused early may be cut while it is sent; what was answered is read all the same.
        if (failure.code === "EPIPE" || failure.code === "ECONNRESET") resolve({ status: 0, type: "", body: "" })
        else reject(failure)
      })
      asked.end(body)
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy()
    return Promise.resolve()
  }
}

function latin(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Buffer.from(value).toString("latin1")]),
  )
}

async function readStart(answer: IncomingMessage): Promise<Answer> {
  const type = answer.headers["content-type"] ?? ""
  const status = answer.statusCode ?? 0
  if (type.includes("event-stream")) {
    answer.destroy()
    return { status, type, body: "" }
  }
  let body = ""
  try {
    for await (const piece of answer) {
      body += (piece as Buffer).toString()
      if (body.length > bodyCharsMax) break
    }
  } catch {
    // What broke off has begun: its status is what counts.
  }
  return { status, type, body }
}
