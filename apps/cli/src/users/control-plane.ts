import { Fault } from "@warren/base/fault.ts"
import { tokenFileOf } from "@warren/protocol/places.ts"
import { z } from "zod"
import { speak, type ControlAddress } from "../control/connection.ts"
import { listenersOf, readOwned } from "./of-account.ts"

interface Where {
  readonly machine: string
  readonly address: ControlAddress
  /** The number of the account the control plane runs as. */
  readonly uid: number
}

type Role = "admin" | "member"

const Refused = z.object({ error: z.object({ message: z.string() }) })
const answerMs = 15_000

/** The control plane of this machine, asked by root with the token that only root and the control plane can read. */
export class ControlPlane {
  readonly #where: Where

  constructor(where: Where) {
    this.#where = where
  }

  /** Whether it was made now; false when there was one. */
  async add(name: string, role: Role, signal: AbortSignal): Promise<boolean> {
    return (await this.#ask("POST", "", { name, role }, [409], signal)) !== 409
  }

  async setDisabled(name: string, isDisabled: boolean, signal: AbortSignal): Promise<void> {
    await this.#ask("PATCH", `/${name}`, { isDisabled }, [], signal)
  }

  /** The same when there is none. */
  async remove(name: string, signal: AbortSignal): Promise<void> {
    await this.#ask("DELETE", `/${name}`, undefined, [404], signal)
  }

  /** Throws when it does not answer: asked before anything is made. */
  async check(signal: AbortSignal): Promise<void> {
    await this.#ask("GET", "?limit=1", undefined, [], signal)
  }

  async #ask(method: string, path: string, body: object | undefined, expected: readonly number[], signal: AbortSignal) {
    const token = this.#token()
    const question = { method, path: `/v1/users${path}`, token, ...(body ? { body: JSON.stringify(body) } : {}) }
    const until = AbortSignal.any([signal, AbortSignal.timeout(answerMs)])
    const { status, text } = await speak(this.#where.address, question, until).catch((cause: unknown) => {
      signal.throwIfAborted()
      if (cause instanceof Fault) throw cause
      throw new Fault("unavailable", "the control plane does not answer", { cause, hint: "sudo warren launcher" })
    })
    if (status < 300 || expected.includes(status)) return status
    throw new Fault("unavailable", `the control plane refused: ${saidIn(text) ?? status}`)
  }

  /** Told to nobody but the control plane: on such a machine anybody can listen on a port that is free. */
  #token(): string {
    const { machine, uid } = this.#where
    const { port } = this.#where.address
    const listeners = listenersOf(port)
    // The launcher, which is root's, may keep its place for it.
    if (listeners.length === 0 || listeners.some((one) => one !== uid && one !== 0)) {
      throw new Fault("unavailable", `it is not the control plane that listens on port ${port}`, {
        hint: "sudo warren launcher, or say the port with WARREN_PORT",
      })
    }
    const token = readOwned(tokenFileOf(machine), uid).trim()
    if (/^wrn_[\w-]{43}$/.test(token)) return token
    throw new Fault("unavailable", `there is no token in ${tokenFileOf(machine)}`, { hint: "sudo warren launcher" })
  }
}

function saidIn(text: string): string | undefined {
  try {
    return Refused.safeParse(JSON.parse(text)).data?.error.message
  } catch {
    return undefined
  }
}
