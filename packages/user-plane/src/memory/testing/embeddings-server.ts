import { once } from "node:events"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** What the next answers are; after the last one it works again. */
type Mood = "works" | "fails" | "refuses" | "hangs" | "nonsense" | "short"

/**
 * An embedding endpoint on loopback whose vectors mean something: each concept is a direction, and a text points to where its
 * words do. So `car` and `automobile` are near, though they share no letter.
 */
export class EmbeddingsServer implements AsyncDisposable {
  readonly #server: Server
  readonly requests: {
    readonly texts: string[]
    readonly authorization: string | undefined
    readonly model: string
  }[] = []
  mood: Mood = "works"
  /** Texts it answers 400 to, alone or in company. */
  refused = new Set<string>()

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<EmbeddingsServer> {
    const server = createServer((request, response) => void embeddings.#answer(request, response))
    const embeddings = new EmbeddingsServer(server)
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    return embeddings
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1/embeddings`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    const closed = once(this.#server, "close")
    this.#server.close()
    await closed
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { input, model } = JSON.parse((await request.toArray()).join("")) as { input: string[]; model: string }
    this.requests.push({ texts: input, authorization: request.headers.authorization, model })
    const isRefused = this.mood === "refuses" || input.some((text) => this.refused.has(text))
    if (this.mood === "hangs") return
    if (this.mood === "fails") return void response.writeHead(503).end("overloaded")
    if (isRefused) return void response.writeHead(400).end(JSON.stringify({ error: request.headers.authorization }))
    if (this.mood === "nonsense") return void response.end("<html>")
    const data = input.map((text, index) => ({ index, embedding: this.mood === "short" ? [1] : vectorOf(text) }))
    // In another order than asked for: the index counts.
    response.end(JSON.stringify({ data: data.toReversed() }))
  }
}

const concepts = [
  ["car", "automobile", "vehicle"],
  ["cat", "kitten", "feline"],
  ["rain", "weather", "umbrella"],
]
export const dimensions = concepts.length + 1

function vectorOf(text: string): number[] {
  const words = text.toLowerCase().split(/\W+/)
  return [...concepts.map((concept) => words.filter((word) => concept.includes(word)).length), 0.1]
}
