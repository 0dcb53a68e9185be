import type { Clock } from "@warren/base/clock.ts"
import { newId } from "@warren/base/id.ts"
import type { InviteDesk } from "./desks/invite-desk.ts"
import type { Store } from "./store/store.ts"

const linkLifeMs = 15 * 60_000

/** The machine's own user, made at the first start: an admin, whose runner is beside this control plane. */
export async function ensureOwner(
  store: Store,
  owner: { readonly name: string; readonly socket: string; readonly uid: number },
  clock: Clock,
): Promise<string> {
  const known = await store.users.byName(owner.name)
  const id = known?.id ?? newId("usr")
  if (!known) {
    await store.users.add({ id, name: owner.name, role: "admin", isDisabled: false, createdAt: clock.now() })
  }
  await store.users.setRoute(id, { socket: owner.socket, uid: owner.uid })
  return id
}

/** While nobody can sign in by themselves: a link that lets one person in as the first admin, once, for minutes. */
export async function firstLink(
  store: Store,
  invites: InviteDesk,
  ownerName: string | undefined,
): Promise<string | undefined> {
  if (await store.users.hasAnyCredential()) return undefined
  const { link } = await invites.make({ role: "admin", name: ownerName, lifeMs: linkLifeMs })
  return link
}
