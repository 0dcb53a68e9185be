import type { Http, Waiting } from "./http.ts"
import { isPiece } from "./run-events.ts"
import { Talk } from "./talk.ts"

const route = "GET /v1/sessions/{session}/ports/{port}/connect"

/** A connection to what listens on a port inside, over a WebSocket. Disposing it closes the connection. */
export class Port implements AsyncDisposable {
  readonly #talk: Talk<typeof route>

  constructor(http: Http, session: string, port: number, waiting?: Waiting) {
    this.#talk = new Talk(http, route, { session, port }, waiting)
  }

  /** What comes, until the other side has said everything. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
    for (let item = await this.#talk.next(); item !== undefined; item = await this.#talk.next()) {
      if (isPiece(item)) yield item.bytes
    }
  }

  write(bytes: string | Uint8Array): Promise<void> {
    return this.#talk.write(typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes)
  }

  /** Nothing more will be written; what comes back can still be read. */
  end(): Promise<void> {
    return this.#talk.send({ op: "eof" })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#talk[Symbol.asyncDispose]()
  }
}
