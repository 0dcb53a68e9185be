import type { Plan } from "../sessions/plan.ts"
import { GatewayRefusal } from "./refusal.ts"

/** Where a sandbox shares the machine's network, "a port inside" would be a port of the machine. The gateway leads to no such port. */
export function checkHasOwnPorts({ network, driver }: Pick<Plan, "network" | "driver">): void {
  if (network !== "host" && driver !== "process") return
  throw new GatewayRefusal(403, "this session shares the machine's network, so its ports are the machine's", {
    hint: "use the driver oci with the network none, proxy or bridge",
  })
}
