import type { Handlers } from "@warren/protocol/contract.ts"
import type { auditCalls } from "@warren/protocol/control/audit.ts"
import type { AuditLog } from "../audit/audit-log.ts"
import { shownCheckpoint, shownEntry } from "./shapes.ts"

export function auditDesk(audit: AuditLog): Handlers<typeof auditCalls> {
  return {
    "audit.list": async ({ after, before, limit }) => {
      await audit.written()
      const checkpoint = await audit.checkpoint()
      const items = (await audit.read({ after, before }, limit)).map(shownEntry)
      return { items, ...(checkpoint ? { checkpoint: shownCheckpoint(checkpoint) } : {}) }
    },
    "audit.verify": async () => {
      const { entries, problem } = await audit.verify()
      return { isWhole: problem === undefined, entries, ...(problem === undefined ? {} : { problem }) }
    },
    "audit.truncate": async ({ seq }) => ({ checkpoint: shownCheckpoint(await audit.truncate(seq)) }),
  }
}
