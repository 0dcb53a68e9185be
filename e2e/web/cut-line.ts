import { once } from "node:events"
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net"

/** A line to a port on this machine that can be cut and mended, as a cable can. */
export class CutLine implements AsyncDisposable {
  readonly #server: Server
  readonly #open = new Set<Socket>()
  #isCut = false

  private constructor(to: number) {
    this.#server = createServer((near) => {
      if (this.#isCut) return near.destroy()
      const far = connect(to, "127.0.0.1")
      for (const socket of [near, far]) {
        this.#open.add(socket)
        socket.on("error", () => undefined)
        socket.on("close", () => {
          this.#open.delete(socket)
          near.destroy()
          far.destroy()
        })
      }
      near.pipe(far).pipe(near)
    })
  }

  static async to(port: number): Promise<CutLine> {
    const line = new CutLine(port)
    line.#server.listen(0, "127.0.0.1")
    await once(line.#server, "listening")
    return line
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  cut(): void {
    this.#isCut = true
    for (const socket of this.#open) socket.destroy()
  }

  mend(): void {
    this.#isCut = false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await new Promise((done) => this.#server.close(done))
  }
}
