import { contract, type Handlers, type Scoped } from "./contract.ts"
import { accountCalls } from "./control/account.ts"
import { auditCalls } from "./control/audit.ts"
import { gatewayCalls } from "./control/gateway.ts"
import { tokenCalls } from "./control/tokens.ts"
import { userCalls } from "./control/users.ts"
import { userPlane } from "./user-plane.ts"

/** What the control plane answers itself: who may. */
export const controlPlane = contract({
  ...accountCalls,
  ...tokenCalls,
  ...userCalls,
  ...auditCalls,
  ...gatewayCalls,
}) satisfies Scoped

export type ControlPlane = Handlers<typeof controlPlane>

/** Everything at the public door. */
export const publicCalls = contract({ ...controlPlane, ...userPlane }) satisfies Scoped
