import type { Driver } from "@warren/drivers/driver.ts"
import { defaultLimits, type Limits } from "@warren/drivers/sandbox-spec.ts"
import type { Received } from "@warren/protocol/contract.ts"
import type { sessionCalls } from "@warren/protocol/user-plane/sessions.ts"
import type { Plan } from "./plan.ts"

/** What is asked of a new session. */
export type Wishes = Received<typeof sessionCalls, "session.create">

/** The sandbox a wish comes down to, on this machine. `image`: what its name stands for. */
export function planOf(wishes: Wishes, driver: Driver, image: string, from?: Plan): Plan {
  const usual = usualPlan(driver, image)
  return {
    driver: driver.name,
    image: from?.image ?? image,
    profile: wishes.profile,
    limits: { ...usual.limits, ...from?.limits, ...defined(wishes.limits) },
    network: wishes.network?.mode ?? usual.network,
    workspace: wishes.workspace ?? from?.workspace,
  }
}

/** The sandbox of a session that asks for nothing special: what is usual, as far as the driver can give it. */
export function usualPlan({ name, abilities }: Driver, image: string): Plan {
  return {
    driver: name,
    image,
    profile: "dev",
    limits: abilities.diskLimit ? defaultLimits : { ...defaultLimits, diskBytes: 0 },
    network: abilities.reasons["network"] === undefined ? "proxy" : "none",
  }
}

/** Without what was not said: a wish that is not there must not overrule what is usual. */
function defined(limits: Wishes["limits"]): Partial<Limits> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined))
}
