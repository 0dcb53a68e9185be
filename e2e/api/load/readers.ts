import type { Process } from "@warren/sdk/process.ts"
import type { Piece } from "@warren/sdk/output.ts"
import { Talk } from "@warren/sdk/talk.ts"
import { Client, type Ground } from "./client.ts"

const attach = "GET /v1/sessions/{session}/processes/{pid}/attach"
const output = "GET /v1/sessions/{session}/processes/{pid}/output"

/** Counts aloud, a hundred at a time, until it is enough. */
export const counting = `n=0
while [ ! -e /tmp/enough ]; do
  seq $((n + 1)) $((n + 100)); n=$((n + 100)); sleep 0.1
done`

/** Kept of what it says: much, so that whoever is held up for minutes, on a machine that has other things to do, still gets everything. */
export const countedBytes = 8 * 1024 * 1024

/** Reads everything a program that counts says, in one of the ways there are. */
abstract class Reader extends Client {
  readonly process: Process
  #rest = ""
  #last = 0

  constructor(ground: Ground, name: string, process: Process) {
    super(ground, `${name} of ${process.pid}`)
    this.process = process
  }

  /** Every number once, in order: nothing is missed, nothing comes twice. */
  take(text: string): void {
    const lines = (this.#rest + text).split("\n")
    this.#rest = lines.pop() ?? ""
    for (const line of lines) this.check(line === String(++this.#last), `${line} came where ${this.#last} should`)
    this.steps++
  }

  /** It has said that it has ended. */
  over(exitCode: number | null): void {
    this.check(exitCode === 0 && this.#rest === "" && this.#last % 100 === 0, `it ended at ${this.#last}`)
  }
}

/** The SDK, which comes back by itself. */
export class EventReader extends Reader {
  async run(): Promise<void> {
    const pieces = this.process.output()
    for (let next = await pieces.next(); ; next = await pieces.next()) {
      if (next.done) return this.over(next.value.exitCode)
      this.check("text" in next.value, "something was dropped")
      if ("text" in next.value) this.take(next.value.text)
    }
  }
}

/** A WebSocket; another when it is lost, from the byte it had. */
export class SocketReader extends Reader {
  #after = 0

  async run(): Promise<void> {
    this.over(await this.insist(() => this.#once()))
  }

  async #once(): Promise<number | null> {
    const which = { session: this.ground.session.id, pid: this.process.pid, after: this.#after }
    await using talk = new Talk(this.ground.http, attach, which)
    for (let item = await talk.next(); item !== undefined; item = await talk.next()) {
      if ("bytes" in item) this.#took(item)
      else if (item.ev === "exit") return item.exitCode
      else if (item.ev === "attached") this.check(item.from === this.#after, `it went on at ${item.from}`)
      else this.check(false, `it said ${item.ev}`)
    }
    throw new Error(`${this.name}: it is not known how it ended`)
  }

  #took({ bytes, text }: Piece): void {
    this.#after += bytes.length
    this.take(text)
  }
}

/** Small enough that an answer gets through also where most lines are cut: what is cut is asked for again, whole. */
const pollBytes = 8 * 1024

/** Asks again and again. */
export class PollingReader extends Reader {
  async run(): Promise<void> {
    const which = { session: this.ground.session.id, pid: this.process.pid, waitMs: 2_000, limit: pollBytes }
    for (let after = 0; ;) {
      const told = await this.insist(() => this.ground.http.call(output, { ...which, after }))
      this.check(told.dropped === 0, "something was dropped")
      after = told.next
      this.take(told.text)
      if (told.ended && told.text === "") return this.over(told.ended.exitCode)
    }
  }
}
