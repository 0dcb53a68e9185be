import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Handlers, Received } from "@warren/protocol/contract.ts"
import type { userCalls } from "@warren/protocol/control/users.ts"
import { loginLimits, type Doorman } from "../login/doorman.ts"
import type { Passwords } from "../login/password.ts"
import { hashOf, newSecret } from "../secret.ts"
import type { InviteRow } from "../store/invites.ts"
import type { Store } from "../store/store.ts"
import type { UserRow } from "../store/users.ts"
import { visitOf, type Visit } from "../visit.ts"
import { absent, done, shownInvite, shownUser } from "./shapes.ts"

type InviteHandlers = Pick<
  Handlers<typeof userCalls>,
  "invite.create" | "invite.list" | "invite.revoke" | "invite.redeem"
>

interface InviteParts {
  readonly store: Store
  readonly doorman: Doorman
  readonly passwords: Passwords
  readonly clock: Clock
  readonly origin: string
}

/** Invites: each lets one person in, once. */
export class InviteDesk {
  readonly #parts: InviteParts

  constructor(parts: InviteParts) {
    this.#parts = parts
  }

  handlers(): InviteHandlers {
    const { store, clock } = this.#parts
    return {
      "invite.create": async (input, context) => {
        const { invite, code, link } = await this.make(input)
        visitOf(context).subject = invite.id
        return { invite: shownInvite(invite), code, link }
      },
      "invite.list": async () => ({ items: (await store.invites.open(clock.now())).map(shownInvite) }),
      "invite.revoke": async ({ id }) => {
        if (!(await store.invites.revoke(id))) throw absent("invite")
        return done
      },
      "invite.redeem": async (input, context) => {
        const user = await this.#redeem(input, visitOf(context))
        await this.#parts.doorman.signIn(visitOf(context), user, "link")
        return { user: shownUser(user) }
      },
    }
  }

  async make(wish: { readonly role: UserRow["role"]; readonly name?: string | undefined; readonly lifeMs: number }) {
    const code = newSecret()
    const now = this.#parts.clock.now()
    const { role, name, lifeMs } = wish
    const row = { id: newId("inv"), hash: hashOf(code), role, name, createdAt: now, expiresAt: now + lifeMs }
    const invite: InviteRow = { ...row, usedAt: undefined }
    await this.#parts.store.invites.add(invite)
    // After the #: what stands there stays in the browser, out of every log on the way.
    return { invite, code, link: `${this.#parts.origin}/join#${code}` }
  }

  async #redeem(input: Received<typeof userCalls, "invite.redeem">, visit: Visit): Promise<UserRow> {
    const { store, doorman, passwords, clock } = this.#parts
    doorman.slow(visit, `invite ${visit.address}`, loginLimits.perAddress)
    const hash = hashOf(input.code)
    const invite = await store.invites.byHash(hash)
    if (!invite || invite.usedAt !== undefined || invite.expiresAt <= clock.now()) throw useless()
    const { user, isNew } = await this.#userFor(invite, input.name)
    const verifier = input.password === undefined ? undefined : await passwords.hash(input.password)
    await store.invites.redeem(hash, clock.now(), { user, isNew, verifier }).catch((cause: unknown) => {
      throw Fault.from(cause).code === "conflict" ? useless() : cause
    })
    return user
  }

  /** Who it makes of somebody. One that was made for a user's name signs that user in, so a lost password can be set anew. */
  async #userFor(invite: InviteRow, given: string | undefined): Promise<{ user: UserRow; isNew: boolean }> {
    const name = invite.name ?? given
    if (name === undefined) throw new Fault("invalid", "say who you want to be: name")
    if (given !== undefined && given !== name) throw useless()
    const known = await this.#parts.store.users.byName(name)
    if (known && invite.name === undefined) throw new Fault("conflict", `there is a user "${name}" already`)
    if (known) return { user: known, isNew: false }
    const user = { id: newId("usr"), name, role: invite.role, isDisabled: false, createdAt: this.#parts.clock.now() }
    return { user, isNew: true }
  }
}

/** One answer for one that never was, was used, is over or is somebody else's. */
function useless(): Fault {
  return new Fault("unauthenticated", "this invite cannot be used", { hint: "ask for a new one" })
}
