import { once } from "node:events"
import { Fault } from "@warren/base/fault.ts"
import { Scope } from "@warren/base/scope.ts"
import { makeHome } from "./account.ts"
import { Parts } from "./parts.ts"
import { checkPort } from "./free-port.ts"
import { Hold } from "./pid-file.ts"
import type { Plan } from "./plan.ts"
import { untilReady } from "./ready.ts"

/** Keeps a Warren running until `signal` aborts. Throws when a part of it ends by itself. */
export async function serve(plan: Plan, signal: AbortSignal, onReady: () => void): Promise<void> {
  await makeHome(plan)
  await using scope = new Scope()
  const hold = scope.use(new Hold(plan.home, plan))
  await checkPort(plan.port)
  const parts = scope.use(new Parts(plan))
  hold.keeps(parts.pids)
  const over = AbortSignal.any([signal, parts.broken])
  try {
    await untilReady(plan.home, plan.port, over)
    onReady()
    if (!over.aborted) await once(over, "abort")
  } catch (thrown) {
    if (!over.aborted) throw thrown
  }
  if (parts.broken.aborted && !signal.aborted) throw parts.broken.reason as Fault
}
