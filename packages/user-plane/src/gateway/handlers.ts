import type { Handlers } from "@warren/protocol/contract.ts"
import type { tunnelCalls } from "@warren/protocol/user-plane/tunnels.ts"
import type { Tunnels } from "./tunnels.ts"

export function tunnelHandlers(tunnels: Tunnels): Handlers<typeof tunnelCalls> {
  return {
    "tunnel.create": async (asked) => tunnels.create(asked),
    "tunnel.list": async (asked) => tunnels.list(asked),
    "tunnel.follow": (asked, { signal }) => tunnels.follow(asked, signal),
    "tunnel.delete": async (asked) => ({ isDeleted: tunnels.delete(asked) }),
  }
}
