import { Fault } from "@warren/base/fault.ts"
import type { Http } from "@warren/sdk/http.ts"
import { Talk } from "@warren/sdk/talk.ts"
import type { Chance } from "../../api/chance.ts"
import { Client, type Ground } from "../../api/load/client.ts"

const attach = "GET /v1/sessions/{session}/terminals/{name}/attach"
const pasteCharsMax = 40_000
/** Shows what is typed, as it is, once it says so. */
export const parrot = "stty raw -echo; printf ready; exec cat"
const begin = "ready"

interface Paste {
  readonly text: string
  /** The connection was lost before all of it was shown, and the typist was told. */
  readonly isDoubtful: boolean
}

/** Pastes into a terminal and reads what it shows; comes back where it was when the line is cut. */
export class Typist extends Client {
  readonly terminal: string
  readonly pastes: Paste[] = []
  readonly #shown: string[] = []
  /** Of what it has shown, enough to find the longest paste in. */
  #end = ""
  readonly #chance: Chance
  #after = 0
  #talk: Talk<typeof attach> | undefined

  constructor(ground: Ground, terminal: string, chance: Chance) {
    super(ground, `typist at ${terminal}`)
    this.terminal = terminal
    this.#chance = chance
  }

  async run(): Promise<void> {
    await this.insist(() => this.#waitFor(begin))
    while (!this.ground.enough.aborted) await this.#paste(this.pastes.length + 1)
    await this.#leave()
  }

  /** All that the terminal has shown. */
  get shown(): string {
    return this.#shown.join("")
  }

  /** Every paste is there wholly, once and in order; of one that is in doubt perhaps only the beginning. How many are cut short. */
  cutShort(): number {
    let rest = this.shown.slice(begin.length).replaceAll(/\?\d+\.\d+;/g, "")
    let short = 0
    for (const { text, isDoubtful } of this.pastes) {
      const length = lengthIn(rest, text)
      this.check(length === text.length || isDoubtful, `"${text.slice(0, 12)}…" of ${text.length} came to ${length}`)
      if (length < text.length) short++
      rest = rest.slice(length)
    }
    this.check(rest === "", `"${rest.slice(0, 40)}" came besides`)
    return short
  }

  /** Either it sees all of it, or it is told that the line was cut; then it asks what was seen, until that is answered. */
  async #paste(number: number): Promise<void> {
    const text = pasteOf(number, Math.ceil(pasteCharsMax ** this.#chance.next()))
    let tries = 0
    await this.insist(async () => {
      const typed = tries++ === 0 ? text : `?${number}.${tries};`
      await this.#type(typed)
      await this.#waitFor(typed)
    })
    this.pastes.push({ text, isDoubtful: tries > 1 })
  }

  async #type(text: string): Promise<void> {
    this.#talk ??= this.#opened()
    await this.#lostIfFails(this.#talk.write(new TextEncoder().encode(text)))
  }

  async #waitFor(text: string): Promise<void> {
    while (!this.#end.includes(text)) await this.#read()
  }

  async #read(): Promise<void> {
    this.#talk ??= this.#opened()
    const item = await this.#lostIfFails(this.#talk.next())
    if (item === undefined) await this.#lostIfFails(Promise.reject(new Fault("unavailable", "it broke off")))
    else if ("bytes" in item) this.#took(item.bytes)
    else if (item.ev === "attached") this.check(item.from === this.#after, `it went on at ${item.from}`)
    else this.check(false, `it said ${item.ev}`)
  }

  #took(bytes: Uint8Array): void {
    this.#after += bytes.length
    const text = Buffer.from(bytes).toString("latin1")
    this.#shown.push(text)
    this.#end = (this.#end + text).slice(-2 * pasteCharsMax)
    this.steps++
  }

  #opened(): Talk<typeof attach> {
    return openTerminal(this.ground.http, this.ground.session.id, this.terminal, this.#after)
  }

  async #lostIfFails<T>(doing: Promise<T>): Promise<T> {
    try {
      return await doing
    } catch (thrown) {
      await this.#leave()
      throw thrown
    }
  }

  async #leave(): Promise<void> {
    await this.#talk?.[Symbol.asyncDispose]()
    this.#talk = undefined
  }
}

function openTerminal(http: Http, session: string, name: string, after: number): Talk<typeof attach> {
  return new Talk(http, attach, { session, name, after })
}

/** Numbered throughout: nothing of it can be taken for another part of it. */
function pasteOf(number: number, chars: number): string {
  let text = `<${number}:`
  for (let n = 1; text.length < chars; n++) text += `${number}.${n},`
  return `${text}>`
}

/** How much of a text is at the beginning of another, where the next text, or nothing, follows. */
function lengthIn(rest: string, text: string): number {
  if (rest.startsWith(text)) return text.length
  let length = 0
  while (length < rest.length && rest[length] === text[length]) length++
  return length === rest.length || rest[length] === "<" ? length : 0
}

/** Looks at a terminal on a line that is never cut: what there is to see. */
export class Onlooker implements AsyncDisposable {
  readonly #talk: Talk<typeof attach>
  readonly #looking: Promise<void>
  readonly #shown: string[] = []

  constructor(http: Http, session: string, terminal: string) {
    this.#talk = openTerminal(http, session, terminal, 0)
    this.#looking = this.#look()
  }

  get shown(): string {
    return this.#shown.join("")
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#talk[Symbol.asyncDispose]()
    await this.#looking
  }

  async #look(): Promise<void> {
    for (let item = await this.#talk.next(); item !== undefined; item = await this.#talk.next())
      this.#shown.push("bytes" in item ? Buffer.from(item.bytes).toString("latin1") : wordOf(item.ev))
  }
}

/** Nothing may be dropped for one who only looks: it would be seen. */
function wordOf(ev: string): string {
  return ev === "attached" ? "" : `[${ev}]`
}
