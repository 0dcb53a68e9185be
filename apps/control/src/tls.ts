import { unwatchFile, watchFile } from "node:fs"
import { readFile } from "node:fs/promises"
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from "node:http2"
import { createSecureContext, type TLSSocket } from "node:tls"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"

interface Files {
  readonly certificate: string
  readonly key: string
}

interface Pair {
  readonly cert: Buffer
  readonly key: Buffer
}

/** How often the files are looked at: whoever renews a certificate does it weeks before the old one is over. */
const lookMs = 1_000

/** Who does not even greet is not waited for. */
const handshakeTimeout = 10_000

/** The owner's certificate, and the server that shows it: HTTP/2, and HTTP/1.1 for who speaks that, WebSockets too. */
export class Tls implements Disposable {
  readonly #files: Files
  readonly #log: Log
  readonly #first: Pair
  readonly #sockets = new Set<TLSSocket>()
  readonly #sessions = new Set<ServerHttp2Session>()
  #server: Http2SecureServer | undefined

  private constructor(files: Files, first: Pair, log: Log) {
    this.#files = files
    this.#first = first
    this.#log = log
    for (const file of [files.certificate, files.key])
      watchFile(file, { interval: lookMs, persistent: false }, this.#look)
  }

  /** Undefined when there is to be none. */
  static async open(files: Files, log: Log): Promise<Tls | undefined> {
    if (files.certificate === "" && files.key === "") return undefined
    if (files.certificate === "" || files.key === "") {
      throw new Fault("invalid", "a certificate and its key go together", {
        hint: "set both WARREN_TLS_CERT and WARREN_TLS_KEY",
      })
    }
    const first = await read(files).catch((cause: unknown) => {
      throw new Fault("invalid", `the certificate cannot be used: ${messageOf(cause)}`, {
        cause,
        hint: "WARREN_TLS_CERT: the chain as PEM; WARREN_TLS_KEY: its key as PEM, readable for this account",
      })
    })
    return new Tls(files, first, log)
  }

  createServer(answer: () => void): Http2SecureServer {
    const server = createSecureServer(
      { ...this.#first, allowHTTP1: true, minVersion: "TLSv1.2", handshakeTimeout },
      answer,
    )
    server.on("secureConnection", (socket) => keep(this.#sockets, socket))
    server.on("session", (session) => keep(this.#sessions, session))
    this.#server = server
    return server
  }

  /** Tells who speaks HTTP/2 that nothing new is taken; each ends with its last answer. */
  endSessions(): void {
    for (const session of this.#sessions) session.close()
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  [Symbol.dispose](): void {
    for (const file of [this.#files.certificate, this.#files.key]) unwatchFile(file, this.#look)
  }

  readonly #look = (): void => {
    read(this.#files).then(
      (pair) => {
        this.#server?.setSecureContext({ ...pair, minVersion: "TLSv1.2" })
        this.#log("info", "tls.renewed")
      },
      // Half of a pair, or nonsense: the one there is goes on until the files fit again.
      (thrown: unknown) => this.#log("warn", "tls.unusable", { message: messageOf(thrown) }),
    )
  }
}

/** Throws when the two do not belong together. */
async function read({ certificate, key }: Files): Promise<Pair> {
  const pair = { cert: await readFile(certificate), key: await readFile(key) }
  createSecureContext(pair)
  return pair
}

function keep<T extends { once(event: "close", listener: () => void): unknown }>(all: Set<T>, one: T): void {
  all.add(one)
  one.once("close", () => all.delete(one))
}
