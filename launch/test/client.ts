import { type ChildProcess, spawn } from "node:child_process"
import { connect } from "node:net"
import type { Writable } from "node:stream"

export interface Answer {
  readonly id: number | null
  readonly ok?: Record<string, unknown>
  readonly fault?: { step: string; errno: string | null; message: string; stderr?: string }
}

export interface Event {
  readonly event: "exited" | "listening"
  readonly id?: number
  readonly pid?: number
  readonly startTicks?: string
  readonly code?: number
  readonly signal?: number
}

/** A running warren-launch, and the other end of its frames. */
export class Launch {
  readonly process: ChildProcess
  readonly exited: Promise<number | null>
  readonly events: Event[] = []
  /** Answers without an id: frames that could not be read. */
  readonly strays: Answer[] = []
  #next = 1
  #pending = new Map<number, (answer: Answer) => void>()
  #waiting: (() => void)[] = []
  #bytes = Buffer.alloc(0)
  #in: Writable

  constructor(program: string, roots: readonly string[]) {
    const child = spawn(
      program,
      roots.flatMap((root) => ["--root", root]),
      { stdio: ["pipe", "pipe", "inherit"] },
    )
    this.process = child
    this.#in = child.stdin
    this.#in.on("error", () => {})
    child.stdout.on("data", (chunk: Buffer) => this.#take(chunk))
    this.exited = new Promise((resolve) => {
      child.on("exit", (code) => {
        for (const answer of this.#pending.values())
          answer({ id: null, fault: { step: "client", errno: "EPIPE", message: "the launcher ended" } })
        this.#pending.clear()
        resolve(code)
      })
    })
  }

  ask(op: string, fields: object = {}): Promise<Answer> {
    const id = this.#next++
    return new Promise((resolve) => {
      this.#pending.set(id, resolve)
      this.raw(frame(JSON.stringify({ id, op, ...fields })))
    })
  }

  raw(bytes: Buffer): void {
    this.#in.write(bytes)
  }

  /** Ends standard input, as a runner that goes away does. */
  async end(): Promise<number | null> {
    this.#in.end()
    return await this.exited
  }

  /** Resolves when anything new has arrived. */
  async arrival(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve)
    })
  }

  #take(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    while (this.#bytes.length >= 4) {
      const length = this.#bytes.readUInt32BE(0)
      if (this.#bytes.length < 4 + length) break
      const body = JSON.parse(this.#bytes.subarray(4, 4 + length).toString()) as Answer | Event
      this.#bytes = this.#bytes.subarray(4 + length)
      if ("event" in body) this.events.push(body)
      else if (body.id === null) this.strays.push(body)
      else {
        this.#pending.get(body.id)?.(body)
        this.#pending.delete(body.id)
      }
    }
    for (const wake of this.#waiting.splice(0)) wake()
  }
}

export function frame(text: string): Buffer {
  const body = Buffer.from(text)
  const head = Buffer.alloc(4)
  head.writeUInt32BE(body.length)
  return Buffer.concat([head, body])
}

/** One request to the test guest. */
export function guest(socket: string, line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const connection = connect(socket)
    connection.on("connect", () => connection.write(line))
    connection.on("data", (chunk) => chunks.push(chunk))
    connection.on("end", () => resolve(Buffer.concat(chunks).toString()))
    connection.on("error", reject)
  })
}
