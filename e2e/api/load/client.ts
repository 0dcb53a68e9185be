import { setTimeout as pause } from "node:timers/promises"
import { Fault } from "@warren/base/fault.ts"
import { Http } from "@warren/sdk/http.ts"
import type { Session } from "@warren/sdk/session.ts"
import { Warren } from "@warren/sdk/warren.ts"

/** How long a client whose Warren is not there waits before it asks again. */
const againMs = 100

/** What all clients of a load share. */
export interface Ground {
  readonly url: string
  readonly token: string
  readonly warren: Warren
  readonly http: Http
  /** Where programs run. */
  readonly session: Session
  /** Aborts when it is enough: whoever makes something finishes what it has begun. */
  readonly enough: AbortSignal
}

/** Somebody who uses Warren in one way, for as long as the load goes on. */
export abstract class Client {
  readonly ground: Ground
  readonly name: string
  /** Goes up with everything that it got. */
  steps = 0
  /** How often it was left alone, and came back. */
  returns = 0

  constructor(ground: Ground, name: string) {
    this.ground = ground
    this.name = name
  }

  /** Resolves when it is enough and everything has come; throws when what came is not what should. */
  abstract run(): Promise<void>

  /** The same again until it is answered, for what may be asked twice. Only that nobody is there is a reason to ask again. */
  async insist<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const answer = await ask()
        this.steps++
        return answer
      } catch (thrown) {
        if (!isGone(thrown)) throw thrown
        this.returns++
        await pause(againMs)
      }
    }
  }

  check(isSo: boolean, what: string): void {
    if (!isSo) throw new Error(`${this.name}: ${what}`)
  }
}

/** Nobody answered, or it broke off, or its answer was that it cannot at the moment. */
function isGone(thrown: unknown): boolean {
  return thrown instanceof Fault && thrown.code === "unavailable"
}
