import { connect, type Socket } from "node:net"
import { createInterface } from "node:readline"
import { Fault, faultCodes, messageOf, type FaultCode } from "@warren/base/fault.ts"
import { ToolAnswered } from "@warren/protocol/supervisor/tool-lines.ts"

type Json = NonNullable<ToolAnswered["out"]> | null

/** The other end of the tool door. */
export class ToolClient implements Disposable {
  readonly #socket: Socket
  readonly #waiting = new Map<number, { resolve(out: Json): void; reject(fault: Fault): void }>()
  #last = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    createInterface({ input: socket }).on("line", (line) => this.#heard(line))
    socket.on("close", () => this.#fail(new Fault("unavailable", "the supervisor is gone")))
    socket.on("error", () => undefined)
  }

  static connect(path: string): Promise<ToolClient> {
    return new Promise((resolve, reject) => {
      const socket = connect(path)
      socket.once("connect", () => resolve(new ToolClient(socket)))
      socket.once("error", (cause) =>
        reject(
          new Fault("unavailable", `no tools at ${path}: ${messageOf(cause)}`, {
            cause,
            hint: "is there an agent in this session?",
          }),
        ),
      )
    })
  }

  get isGone(): boolean {
    return this.#socket.destroyed
  }

  ask(tool: string, input: unknown): Promise<Json> {
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(new Fault("unavailable", "the supervisor is gone"))
      this.#waiting.set(id, { resolve, reject })
      this.#socket.write(`${JSON.stringify({ id, tool, input })}\n`)
    })
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }

  #heard(line: string): void {
    const { id, out, fault } = ToolAnswered.parse(JSON.parse(line))
    const waiting = this.#waiting.get(Number(id))
    this.#waiting.delete(Number(id))
    if (fault) waiting?.reject(new Fault(codeOf(fault.code), fault.message, { hint: fault.hint }))
    else waiting?.resolve(out ?? null)
  }

  #fail(fault: Fault): void {
    for (const { reject } of this.#waiting.values()) reject(fault)
    this.#waiting.clear()
  }
}

function codeOf(text: string): FaultCode {
  return Object.hasOwn(faultCodes, text) ? (text as FaultCode) : "internal"
}
