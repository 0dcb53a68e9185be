import type { ManyUsers } from "./machine.ts"

const atOnce = 50

/** Somebody who makes sessions as fast as they can. */
export class SessionFlood {
  readonly #machine: ManyUsers
  readonly #token: string
  readonly #count: number
  readonly #made: string[] = []
  /** How often each answer came. */
  readonly told: Record<string, number> = {}
  seconds = 0

  constructor(machine: ManyUsers, token: string, count: number) {
    this.#machine = machine
    this.#token = token
    this.#count = count
  }

  /** What became of the work of others meanwhile. */
  async while<T>(work: () => Promise<T>): Promise<T> {
    const begun = performance.now()
    const [done] = await Promise.all([work(), ...Array.from({ length: atOnce }, (_, n) => this.#make(n))])
    this.seconds = Math.round((performance.now() - begun) / 1_000)
    return done
  }

  async remove(): Promise<void> {
    for (const id of this.#made) await this.#machine.ask(`/v1/sessions/${id}`, { token: this.#token, method: "DELETE" })
  }

  async #make(first: number): Promise<void> {
    for (let n = first; n < this.#count; n += atOnce) {
      const { status, body } = await this.#machine.ask("/v1/sessions", { token: this.#token, body: {} })
      if (status === 201) this.#made.push(String(body["id"]))
      this.#note(status === 201 ? "made" : faultOf(body))
    }
  }

  #note(answer: string): void {
    this.told[answer] = (this.told[answer] ?? 0) + 1
  }
}

function faultOf(body: Readonly<Record<string, unknown>>): string {
  const { code, message, hint } = (body["error"] ?? {}) as Record<string, unknown>
  return JSON.stringify({ code, message, hint })
}
