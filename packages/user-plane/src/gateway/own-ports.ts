import type { Plan } from "../sessions/plan.ts"
import { GatewayRefusal } from "./refusal.ts"

/** Where a sandbox shares the machine's network, "a port inside" would be a port of the machine. The gateway leads to no such port. */
export function checkHasOwnPorts({ network }: Pick<Plan, "network">): void {
  if (network !== "host") return
  throw new GatewayRefusal(403, "this session shares the machine's network, so its ports are the machine's", {
    hint: "use the network none, proxy or bridge",
  })
}
