import type { DriverName } from "@warren/drivers/driver.ts"
import { defaultLimits, type Limits } from "@warren/drivers/sandbox-spec.ts"
import type { sessionCalls } from "@warren/protocol/user-plane/sessions.ts"
import type { Received } from "@warren/protocol/contract.ts"
import type { Plan } from "./plan.ts"

/** What is asked of a new session. */
export type Wishes = Received<typeof sessionCalls, "session.create">

/** The sandbox a wish comes down to, on this machine. */
export function planOf(
  wishes: Wishes,
  usual: { readonly driver: DriverName; readonly image: string },
  from?: Plan,
): Plan {
  const { profile, workspace, network } = wishes
  const limits: Limits = { ...defaultLimits, ...from?.limits, ...defined(wishes.limits) }
  return {
    driver: wishes.driver ?? from?.driver ?? usual.driver,
    image: from?.image ?? usual.image,
    profile,
    limits,
    network: network.mode,
    workspace: workspace ?? from?.workspace,
  }
}

/** Without what was not said: a wish that is not there must not overrule what is usual. */
function defined(limits: Wishes["limits"]): Partial<Limits> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined))
}
