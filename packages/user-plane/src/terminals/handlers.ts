import type { Handlers } from "@warren/protocol/contract.ts"
import type { terminalCalls } from "@warren/protocol/user-plane/terminals.ts"
import type { Terminals } from "./terminals.ts"

export function terminalHandlers(terminals: Terminals): Handlers<typeof terminalCalls> {
  return {
    "terminal.open": (asked, { signal }) => terminals.open(asked, signal),
    "terminal.list": async ({ session }, { signal }) => ({ terminals: await terminals.list(session, signal) }),
    "terminal.attach": (asked, { signal }) => terminals.attach(asked, signal),
    "terminal.close": async (asked, { signal }) => ({ wasRunning: await terminals.close(asked, signal) }),
  }
}
