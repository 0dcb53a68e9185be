import type { z } from "zod"
import type { SignIn, User } from "@warren/protocol/control/account.ts"
import type { AuditCheckpoint, AuditEntry } from "@warren/protocol/control/audit.ts"
import type { Token } from "@warren/protocol/control/tokens.ts"
import type { Invite } from "@warren/protocol/control/users.ts"
import { TokenScope } from "@warren/protocol/token-scope.ts"
import { Fault } from "@warren/base/fault.ts"
import type { AuditRow, CheckpointRow } from "../store/audit-rows.ts"
import type { InviteRow } from "../store/invites.ts"
import type { SignInRow } from "../store/sign-ins.ts"
import type { TokenRow } from "../store/tokens.ts"
import type { UserRow } from "../store/users.ts"

/** Rows as those who ask see them: hashes stay here. */

const iso = (time: number): string => new Date(time).toISOString()

export const done = { ok: true } as const

export function shownUser({ id, name, role, isDisabled, createdAt }: UserRow): z.output<typeof User> {
  return { id, name, role, isDisabled, createdAt: iso(createdAt) }
}

export function shownSignIn(row: SignInRow, viaId: string): z.output<typeof SignIn> {
  const { id, method, address, createdAt, usedAt, expiresAt } = row
  const times = { createdAt: iso(createdAt), usedAt: iso(usedAt), expiresAt: iso(expiresAt) }
  return { id, method, address, ...times, isThis: id === viaId }
}

export function shownToken(row: TokenRow): z.output<typeof Token> {
  const { id, label, namePrefix, sessionsMax, requestsPerMinute, createdAt, expiresAt, usedAt } = row
  return {
    id,
    label,
    scopes: row.scopes.split(" ").flatMap((text) => TokenScope.safeParse(text).data ?? []),
    limits: {
      ...(namePrefix === undefined ? {} : { namePrefix }),
      ...(sessionsMax === undefined ? {} : { sessionsMax }),
      ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
    },
    createdAt: iso(createdAt),
    ...(expiresAt === undefined ? {} : { expiresAt: iso(expiresAt) }),
    ...(usedAt === undefined ? {} : { usedAt: iso(usedAt) }),
  }
}

export function shownInvite({ id, role, name, createdAt, expiresAt }: InviteRow): z.output<typeof Invite> {
  return { id, role, ...(name === undefined ? {} : { name }), createdAt: iso(createdAt), expiresAt: iso(expiresAt) }
}

export function shownEntry(row: AuditRow): z.output<typeof AuditEntry> {
  return { ...row, time: iso(row.time) }
}

export function shownCheckpoint(row: CheckpointRow): z.output<typeof AuditCheckpoint> {
  return { ...row, time: iso(row.time) }
}

export function absent(noun: string): Fault {
  return new Fault("not_found", `there is no such ${noun}`)
}
