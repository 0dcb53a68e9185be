import { chmodSync, mkdirSync, rmSync } from "node:fs"
import { connect, createServer, type Server, type Socket } from "node:net"
import { dirname } from "node:path"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Dial } from "@warren/protocol/hub/hub-client.ts"

/** How the hub is reached: by connecting to it, or by waiting until it comes. */
export interface Way extends AsyncDisposable {
  readonly dial: Dial
}

export async function wayTo(url: string): Promise<Way> {
  const [kind, ...rest] = url.split(":")
  const where = rest.join(":")
  if (kind === "listen") return Waiting.at(where)
  if (kind === "unix")
    return { dial: (signal) => connected({ path: where }, signal), [Symbol.asyncDispose]: () => Promise.resolve() }
  const [host = "", port = ""] = rest
  if (kind === "tcp" && /^\d+$/.test(port))
    return {
      dial: (signal) => connected({ host, port: Number(port) }, signal),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
  throw new Fault("invalid", `a hub is not reached by ${JSON.stringify(kind)}`, {
    hint: "unix:/path, tcp:host:port or listen:/path",
  })
}

function connected(
  to: { readonly path: string } | { readonly host: string; readonly port: number },
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = "path" in to ? connect(to.path) : connect(to.port, to.host)
    const abort = (): void => void socket.destroy(new Fault("cancelled", "nobody wants it any more"))
    signal.addEventListener("abort", abort, { once: true })
    socket.once("close", () => signal.removeEventListener("abort", abort))
    socket.once("connect", () => resolve(socket))
    socket.once("error", (cause) =>
      reject(signal.aborted ? signal.reason : new Fault("unavailable", `no hub: ${messageOf(cause)}`, { cause })),
    )
  })
}

/** A place where the hub comes, because nothing in here can reach it. Who comes last counts. */
class Waiting implements Way {
  readonly #path: string
  readonly #server: Server
  #current: Socket | undefined
  #next: Socket | undefined
  #wake: (() => void) | undefined

  private constructor(path: string, server: Server) {
    this.#path = path
    this.#server = server
    server.on("connection", (socket) => this.#came(socket))
  }

  static at(path: string): Promise<Waiting> {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    rmSync(path, { force: true })
    const server = createServer()
    return new Promise((resolve, reject) => {
      server.once("error", reject)
      server.listen(path, () => {
        chmodSync(path, 0o600)
        resolve(new Waiting(path, server))
      })
    })
  }

  readonly dial: Dial = async (signal) => {
    for (;;) {
      signal.throwIfAborted()
      const socket = this.#next
      this.#next = undefined
      if (socket && !socket.destroyed) return (this.#current = socket)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        signal.addEventListener("abort", () => resolve(), { once: true })
      })
    }
  };

  [Symbol.asyncDispose](): Promise<void> {
    this.#current?.destroy()
    this.#next?.destroy()
    rmSync(this.#path, { force: true })
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  #came(socket: Socket): void {
    socket.on("error", () => undefined)
    this.#next?.destroy()
    this.#next = socket
    this.#current?.destroy()
    this.#wake?.()
  }
}
