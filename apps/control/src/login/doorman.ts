import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Buckets } from "../buckets.ts"
import { hashOf, newSecret } from "../secret.ts"
import type { SignInMethod } from "../store/sign-ins.ts"
import type { Store } from "../store/store.ts"
import type { UserRow } from "../store/users.ts"
import type { Visit } from "../visit.ts"
import type { Cookies } from "./cookie.ts"
import { signInLimits } from "./identity.ts"
import type { Passwords } from "./password.ts"

export const loginLimits = {
  /** Guesses at one account from one address. Others, its owner among them, are not held up by them. */
  perAccount: { perMinute: 5, burst: 10 },
  perAddress: { perMinute: 30, burst: 30 },
} as const

interface DoormanParts {
  readonly store: Store
  readonly cookies: Cookies
  readonly passwords: Pick<Passwords, "isRight">
  readonly buckets: Buckets
  readonly clock: Clock
}

/** Signs people in and hands them their cookie. */
export class Doorman {
  readonly #parts: DoormanParts

  constructor(parts: DoormanParts) {
    this.#parts = parts
  }

  /** The user of this name and password. Whatever is wrong, the answer is the same, and takes as long. */
  async check(visit: Visit, name: string, password: string): Promise<UserRow> {
    this.slow(visit, `login ${name} ${visit.address}`, loginLimits.perAccount)
    this.slow(visit, `login ${visit.address}`, loginLimits.perAddress)
    const { users } = this.#parts.store
    const user = await users.byName(name)
    const verifier = user && !user.isDisabled ? await users.passwordOf(user.id) : undefined
    const isRight = await this.#parts.passwords.isRight(password, verifier)
    if (user && isRight) return user
    throw new Fault("unauthenticated", "the name or the password is wrong")
  }

  /** A new cookie at each sign-in: one that was planted before is worth nothing after. */
  async signIn(visit: Visit, user: UserRow, method: SignInMethod): Promise<void> {
    const { store, cookies, clock } = this.#parts
    if (user.isDisabled) throw new Fault("unauthenticated", "the name or the password is wrong")
    const secret = newSecret()
    const now = clock.now()
    const times = { createdAt: now, usedAt: now, expiresAt: now + signInLimits.lifeMs }
    const { address } = visit
    const row = { id: newId("sin"), userId: user.id, hash: hashOf(secret), method, address, ...times }
    await store.signIns.add(row, signInLimits.perUserMax)
    visit.headers.push(cookies.set("sign-in", secret, signInLimits.lifeMs))
    visit.subject = user.id
  }

  slow(visit: Visit, key: string, { perMinute, burst }: { readonly perMinute: number; readonly burst: number }): void {
    const waitS = this.#parts.buckets.take(key, perMinute, burst)
    if (waitS === 0) return
    visit.headers.push(["retry-after", String(waitS)])
    throw new Fault("limit", "too many tries", { hint: `try again in ${waitS} s` })
  }
}
