import { once } from "node:events"
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net"
import type { Chance } from "../../api/chance.ts"
import { endings, fateOf, type Ending, type Fate } from "./fate.ts"
import { FrameEdge } from "./frame-edge.ts"

/** What was cut. */
export interface Cuts {
  all: number
  sockets: number
  /** Of WebSockets, where a frame had begun and not ended. */
  insideFrames: number
  readonly by: Record<Ending, number>
}

/** A line to a port on this machine whose every connection is cut, at a byte and in a way that a seed decides, until it is healed. */
export class ToxicLine implements AsyncDisposable {
  readonly cuts: Cuts = { all: 0, sockets: 0, insideFrames: 0, by: { end: 0, reset: 0, stall: 0, late: 0 } }
  readonly #server: Server
  readonly #chance: Chance
  readonly #open = new Set<Connection>()
  #isHealed = false
  #port = 0

  private constructor(chance: Chance) {
    this.#chance = chance
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
      const far = connect({ port: this.#port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true })
      const fate = this.#isHealed ? undefined : fateOf(this.#chance)
      const connection = new Connection(near, far, fate, this.cuts)
      this.#open.add(connection)
      near.once("close", () => this.#open.delete(connection))
    })
  }

  /** Leads nowhere yet: who is at its end has to know its address first. */
  static async open(chance: Chance): Promise<ToxicLine> {
    const line = new ToxicLine(chance)
    line.#server.listen(0, "127.0.0.1")
    await once(line.#server, "listening")
    return line
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  leadTo(port: number): void {
    this.#port = port
  }

  /** From now on it is a line like any other, also for those who are on it. */
  heal(): void {
    this.#isHealed = true
    for (const connection of this.#open) connection.spare()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#open) connection[Symbol.dispose]()
    await new Promise((done) => this.#server.close(done))
  }
}

class Connection implements Disposable {
  readonly #near: Socket
  readonly #far: Socket
  readonly #cuts: Cuts
  readonly #edges = { up: new FrameEdge(), down: new FrameEdge() }
  #fate: Fate | undefined
  #left: number
  #timer: NodeJS.Timeout | undefined
  #isStruck = false

  constructor(near: Socket, far: Socket, fate: Fate | undefined, cuts: Cuts) {
    this.#near = near
    this.#far = far
    this.#fate = fate
    this.#left = fate?.bytes ?? 0
    this.#cuts = cuts
    if (fate) this.#timer = setTimeout(() => this.#strike(fate), fate.quietMs)
    this.#carry("up", near, far)
    this.#carry("down", far, near)
  }

  spare(): void {
    if (this.#isStruck) return
    this.#fate = undefined
    clearTimeout(this.#timer)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#near.destroy()
    this.#far.destroy()
  }

  #carry(way: Fate["way"], from: Socket, to: Socket): void {
    from.on("data", (bytes: Buffer) => this.#pass(way, bytes, from, to))
    to.on("drain", () => from.resume())
    from.on("end", () => this.#isStruck || to.end())
    from.on("error", () => undefined)
    // Whoever is gone is gone for the other side, too, unless it is the point that it does not know yet.
    from.on("close", () => this.#isStruck || this[Symbol.dispose]())
  }

  #pass(way: Fate["way"], bytes: Buffer, from: Socket, to: Socket): void {
    if (this.#isStruck) return
    if (this.#fate) this.#timer?.refresh()
    const fate = this.#fate?.way === way ? this.#fate : undefined
    const passed = fate ? bytes.subarray(0, this.#left) : bytes
    this.#edges[way].take(passed)
    if (fate) this.#left -= passed.length
    if (!to.write(passed)) from.pause()
    if (fate && this.#left <= 0) this.#strike(fate)
  }

  #strike({ ending, stallMs }: Fate): void {
    if (this.#isStruck) return
    this.#isStruck = true
    clearTimeout(this.#timer)
    this.#count(ending)
    const [near, far] = [this.#near, this.#far]
    if (ending === "end") for (const side of [near, far]) side.end(() => side.destroy())
    if (ending === "reset") for (const side of [near, far]) side.resetAndDestroy()
    if (ending === "late") near.resetAndDestroy()
    if (ending !== "stall" && ending !== "late") return
    this.#timer = setTimeout(() => {
      for (const side of [near, far]) if (!side.destroyed) side.resetAndDestroy()
    }, stallMs)
  }

  #count(ending: Ending): void {
    const { up, down } = this.#edges
    this.#cuts.all++
    this.#cuts.by[ending]++
    if (up.isSocket) this.#cuts.sockets++
    if (up.isInside || down.isInside) this.#cuts.insideFrames++
  }
}

/** In words. */
export function shown({ all, sockets, insideFrames, by }: Cuts): string {
  const ways = endings.map((ending) => `${by[ending]} ${ending}`).join(", ")
  return `${all} cuts, ${sockets} of WebSockets, ${insideFrames} inside a frame (${ways})`
}
