import { expect, test } from "vitest"
import type { Lease, LeaseId } from "./lease.ts"
import { refusalOf } from "./refusal.ts"

const lease: Lease = {
  ...{ id: "lea_1" as LeaseId, session: "ses_1", scope: "git:read", destination: "github.com/acme" },
  ...{ createdAt: 0, expiresAt: 1_000, revokedAt: undefined },
}
const asked = { session: "ses_1", scopes: ["git:read"], destination: "github.com/acme", now: 999 } as const

test.each([
  ["as it was granted", {}, {}, undefined],
  ["below it", {}, { destination: "github.com/acme/widgets" }, undefined],
  ["of another session, and nothing else is said of it", { revokedAt: 1 }, { session: "ses_2" }, "other-session"],
  ["revoked", { revokedAt: 1 }, {}, "revoked"],
  ["at the moment it ends", {}, { now: 1_000 }, "expired"],
  ["for something else", {}, { scopes: ["git:write"] as const }, "other-scope"],
  ["beside it", {}, { destination: "github.com/acme-evil" }, "other-destination"],
  ["above it", {}, { destination: "github.com" }, "other-destination"],
  ["elsewhere", {}, { destination: "evil.test/github.com/acme" }, "other-destination"],
])("a lease %s", (_, changes, other, refusal) => {
  expect(refusalOf({ ...lease, ...changes }, { ...asked, ...other })).toBe(refusal)
})

test("none is unknown", () => expect(refusalOf(undefined, asked)).toBe("unknown"))
