import { Fault, messageOf } from "@warren/base/fault.ts"
import type { z } from "zod"
import { describeIssues } from "../issues.ts"
import { Control, hubLimits, Numbers, Resume, type Control as ControlFrame } from "./frames.ts"
import type { LinkMemory } from "./link-memory.ts"
import type { ProcessTruth } from "./messages.ts"

/** One connection. It may lose what was sent last, and it may break at any moment. */
export interface Wire {
  send(text: string): void
  close(code: number, reason: string): void
}

export interface LinkOptions<Out, In extends { readonly type: string }> {
  /** Which link it is: a new one begins with each supervisor, not with each connection. */
  readonly link: string
  readonly memory: LinkMemory<Out>
  readonly vocabulary: z.ZodDiscriminatedUnion
  /** Takes a message. `note` says that it was taken: called in the same transaction as what it leads to. */
  deliver(message: In, note: () => void): void
  /** What the other end said about itself. */
  heard?(frame: ControlFrame): void
  /** What this end says about itself. */
  truth?(): ProcessTruth
  /** Something was acknowledged: there may be room again. */
  acknowledged?(): void
  later?(work: () => void): void
}

/** Every legal move of a link. */
const moves = {
  attach: { from: ["apart", "greeting", "together"], to: "greeting" },
  greeted: { from: ["greeting"], to: "together" },
  detach: { from: ["apart", "greeting", "together"], to: "apart" },
} as const
type State = "apart" | "greeting" | "together"

/**
 * One end of a conversation that survives its connections: each message has a number, is kept until the other end says that it was
 * taken, is sent again on the next connection, and is taken once, in order.
 */
export class ReliableLink<Out extends object, In extends { readonly type: string }> {
  readonly #options: LinkOptions<Out, In>
  readonly #later: (work: () => void) => void
  #state: State = "apart"
  #wire: Wire | undefined
  /** The last one the other end has, and the last one that was put on this connection. */
  #acked = 0
  #flown = 0
  #flying: number[] = []
  #flyingBytes = 0
  #unsaid = 0

  constructor(options: LinkOptions<Out, In>) {
    this.#options = options
    this.#later = options.later ?? ((work) => void setImmediate(work))
  }

  get isTogether(): boolean {
    return this.#state === "together"
  }

  /** Goes on with this connection; one before it is let go of. `greeting`: what the other end has said first, if it has. */
  attach(wire: Wire, greeting?: Resume): void {
    this.#move("attach")
    this.#wire = wire
    this.#flying = []
    this.#flyingBytes = 0
    this.#unsaid = 0
    const truth = this.#options.truth?.()
    const resume = { type: "resume", link: this.#options.link, ack: this.#options.memory.received } as const
    this.#put(truth ? { ...resume, truth } : resume)
    if (greeting) this.#greeted(wire, greeting)
  }

  /** The connection is gone. What another has replaced is not meant. */
  detach(wire: Wire): void {
    if (this.#wire !== wire) return
    this.#move("detach")
    this.#wire = undefined
  }

  /** Kept at once; sent when it can be. */
  send(message: Out): void {
    this.#options.memory.push(message)
    this.#pump()
  }

  /** What was put into the memory elsewhere is sent, too. */
  flush(): void {
    this.#pump()
  }

  ping(): void {
    const truth = this.#options.truth?.()
    if (this.isTogether) this.#put({ type: "ping", ack: this.#received(), ...(truth ? { truth } : {}) })
  }

  /** Nonsense ends the connection it came on, never the link. */
  receive(wire: Wire, text: string): void {
    if (this.#wire !== wire) return
    try {
      this.#take(wire, JSON.parse(text))
    } catch (failure) {
      const { code } = failure instanceof SyntaxError ? { code: "invalid" } : Fault.from(failure)
      this.detach(wire)
      wire.close(code === "invalid" ? 1002 : 1011, closeReason(failure))
    }
  }

  #take(wire: Wire, value: unknown): void {
    const numbers = Numbers.safeParse(value)
    if (!numbers.success) return this.#control(wire, value)
    if (!this.isTogether) throw new Fault("invalid", "the greeting comes first")
    const { seq, ack } = numbers.data
    this.#heardAck(ack)
    const expected = this.#options.memory.received + 1
    if (seq > expected) throw new Fault("invalid", `number ${seq} came before number ${expected}`)
    if (seq === expected) this.#deliver(value, seq)
    this.#oweAck()
  }

  #deliver(value: unknown, seq: number): void {
    const { memory, vocabulary, deliver } = this.#options
    const parsed = vocabulary.safeParse(value)
    if (parsed.success) return deliver(parsed.data as In, () => memory.note(seq))
    // Taken all the same: sent again it would not mean more.
    memory.note(seq)
    const code = isKnown(vocabulary, value) ? ("invalid" as const) : ("unsupported" as const)
    this.#put({ type: "refused", ack: seq, of: seq, code, message: describeIssues(parsed.error) })
  }

  #control(wire: Wire, value: unknown): void {
    const parsed = Control.safeParse(value)
    if (!parsed.success) throw new Fault("invalid", "that is neither a message nor a sign")
    const frame = parsed.data
    if (frame.type === "resume") return this.#greeted(wire, frame)
    if (!this.isTogether) throw new Fault("invalid", "the greeting comes first")
    this.#heardAck(frame.ack)
    if (frame.type === "ping") this.#put({ type: "pong", ack: this.#received() })
    this.#options.heard?.(frame)
  }

  #greeted(wire: Wire, frame: Resume): void {
    if (this.#wire !== wire) return
    if (frame.link !== this.#options.link) throw new Fault("invalid", "that is another link")
    this.#move("greeted")
    this.#flown = Math.max(this.#acked, frame.ack)
    this.#acknowledge(frame.ack)
    this.#options.heard?.(frame)
    this.#pump()
  }

  #heardAck(ack: number): void {
    if (ack > this.#flown) throw new Fault("invalid", `number ${ack} was never sent`)
    if (ack <= this.#acked) return
    this.#acknowledge(ack)
    this.#pump()
  }

  #acknowledge(ack: number): void {
    const landed = this.#flying.splice(0, Math.max(0, ack - this.#acked))
    for (const bytes of landed) this.#flyingBytes -= bytes
    this.#acked = Math.max(this.#acked, ack)
    this.#options.memory.forget(ack)
    this.#options.acknowledged?.()
  }

  #pump(): void {
    while (
      this.isTogether &&
      this.#flying.length < hubLimits.flightMessages &&
      this.#flyingBytes < hubLimits.flightBytes
    ) {
      const [next] = this.#options.memory.after(this.#flown, 1)
      if (!next) return
      this.#flown = next.seq
      this.#flying.push(next.bytes)
      this.#flyingBytes += next.bytes
      this.#put({ ...next.message, seq: next.seq, ack: this.#received() })
    }
  }

  #oweAck(): void {
    this.#unsaid++
    if (this.#unsaid >= hubLimits.ackEvery) return this.#sayAck()
    if (this.#unsaid === 1) this.#later(() => this.#sayAck())
  }

  #sayAck(): void {
    if (this.#unsaid > 0 && this.isTogether) this.#put({ type: "ack", ack: this.#received() })
  }

  /** Everything that is sent carries what was received. */
  #received(): number {
    this.#unsaid = 0
    return this.#options.memory.received
  }

  #put(frame: object): void {
    this.#wire?.send(JSON.stringify(frame))
  }

  #move(move: keyof typeof moves): void {
    const { from, to } = moves[move]
    if (!(from as readonly State[]).includes(this.#state))
      throw new Fault("invalid", `a link that is ${this.#state} cannot ${move}`)
    this.#state = to
  }
}

function isKnown(vocabulary: z.ZodDiscriminatedUnion, value: unknown): boolean {
  const { type } = value as { type?: unknown }
  return vocabulary.options.some((option) => {
    const { shape } = option as unknown as { shape?: { type?: z.ZodType } }
    return shape?.type?.safeParse(type).success ?? false
  })
}

/** A close reason holds 123 bytes. */
function closeReason(failure: unknown): string {
  return failure instanceof Fault ? failure.message.slice(0, 100) : messageOf(failure).slice(0, 60)
}
