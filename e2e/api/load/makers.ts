import { randomUUID } from "node:crypto"
import { setTimeout as pause } from "node:timers/promises"
import type { Process } from "@warren/sdk/process.ts"
import { Client, type Ground } from "./client.ts"

/** Between two things it makes: the point is when they are made, not how many. */
const restMs = 40

/** Makes things, each with a key, until each is acknowledged. */
abstract class Maker extends Client {
  /** What was acknowledged, by the name it was given. */
  readonly made = new Map<string, string>()
  abstract readonly most: number

  /** Its id. */
  abstract make(name: string, key: string): Promise<string>
  abstract look(id: string): Promise<unknown>

  async run(): Promise<void> {
    while (!this.ground.enough.aborted) {
      if (this.made.size < this.most) await this.#another()
      // What was acknowledged is there, at once and from then on.
      for (const id of [...this.made.values()].slice(-3)) await this.insist(() => this.look(id))
      await pause(restMs)
    }
  }

  async #another(): Promise<void> {
    const [name, key] = [`${this.name}-${this.made.size}`, randomUUID()]
    const id = await this.insist(() => this.make(name, key))
    this.check(![...this.made.values()].includes(id), `${id} was made twice`)
    this.made.set(name, id)
  }
}

export class SessionMaker extends Maker {
  readonly most = 5

  async make(name: string, key: string): Promise<string> {
    const wishes = { name, network: { mode: "none" } } as const
    return (await this.ground.http.make("POST /v1/sessions", wishes, { key })).id
  }

  look(id: string): Promise<unknown> {
    return this.ground.http.call("GET /v1/sessions/{id}", { id })
  }
}

export class MemoryMaker extends Maker {
  /** Long: whenever it is that somebody is killed, one is being made. Two makers together stay below what a user may keep. */
  readonly most = 9_000

  async make(name: string, key: string): Promise<string> {
    return (await this.ground.http.make("POST /v1/memories", { text: name, tags: [this.name] }, { key })).id
  }

  look(id: string): Promise<unknown> {
    return this.ground.http.call("GET /v1/memories/{id}", { id })
  }
}

/** Of the control plane's own. */
export class TokenMaker extends Maker {
  readonly most = 100

  async make(name: string, key: string): Promise<string> {
    return (await this.ground.http.make("POST /v1/tokens", { label: name }, { key })).about.id
  }

  async look(id: string): Promise<unknown> {
    const { items } = await this.ground.http.call("GET /v1/tokens", {})
    this.check(items.filter((token) => token.id === id).length === 1, `${id} is not there`)
    return undefined
  }
}

/** Writes lines to a program, each once: what was acknowledged arrived once, what was not at most once. */
export class Writer extends Client {
  readonly #process: Process

  constructor(ground: Ground, process: Process) {
    super(ground, "writer")
    this.#process = process
  }

  async run(): Promise<void> {
    const sent: { line: string; isAcknowledged: boolean }[] = []
    while (!this.ground.enough.aborted) {
      const line = `line ${sent.length}`
      let tries = 0
      await this.insist(async () => {
        if (tries++ > 0) return
        sent.push({ line, isAcknowledged: false })
        await this.#process.write(`${line}\n`)
        sent.splice(-1, 1, { line, isAcknowledged: true })
      })
      await pause(restMs)
    }
    await this.#process.write("", { isLast: true })
    const came = (await this.#read()).split("\n")
    for (const { line, isAcknowledged } of sent) {
      const times = came.filter((one) => one === line).length
      this.check(times === 1 || (times === 0 && !isAcknowledged), `"${line}" came ${times} times`)
    }
  }

  async #read(): Promise<string> {
    let text = ""
    for await (const piece of this.#process) if ("text" in piece) text += piece.text
    return text
  }
}
