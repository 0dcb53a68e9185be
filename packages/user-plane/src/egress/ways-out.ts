import { rm } from "node:fs/promises"
import { join } from "node:path"
import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { SandboxId } from "@warren/drivers/sandbox-spec.ts"
import type { Broker } from "../broker/broker.ts"
import type { Leases } from "../broker/leases.ts"
import type { KeyUse, Reach, WayOut, WaysOut } from "../sessions/way-out.ts"
import { openEgress, type Credential, type SessionEgress } from "./session-egress.ts"

export interface WaysOutOptions {
  /** A folder in it for each sandbox. */
  readonly root: string
  readonly broker: Broker
  readonly leases: Leases
  /** The hosts of the LLMs that keys are for. */
  readonly llms: Readonly<Record<"llm:anthropic" | "llm:openai", string>>
  readonly log: Log
  readonly clock: Clock
}

/** Proxies with the broker behind them, one for each sandbox: made with it, before anybody knows whose it will be. */
export function waysOut(options: WaysOutOptions): WaysOut {
  const folder = (id: SandboxId): string => join(options.root, id)
  return {
    folder,
    async open(id) {
      const { broker, leases, log, clock } = options
      const common = { session: id, folder: folder(id), broker, leases, log, clock }
      // No credentials yet: to say that there are none would end the leases that programs of an adopted sandbox have.
      const egress = await openEgress({ ...common, policy: { mode: "none" }, keepPolicy: () => undefined })
      return wayOutOf(egress, options.llms)
    },
    async remove(id) {
      if (options.leases.list(id).length > 0) options.leases.revokeSession(id)
      await rm(folder(id), { recursive: true, force: true })
    },
  }
}

function wayOutOf(egress: SessionEgress, llms: WaysOutOptions["llms"]): WayOut {
  return {
    async allow({ access, allow }: Reach) {
      await egress.setPolicy({ mode: access, allow: [...allow] })
    },
    lend: (keys) => egress.setCredentials(keys.map((key) => credentialOf(key, llms))),
    environment: () => egress.environment(),
    denials: (after) => egress.denials.journal.tail(deniedMax).filter(({ seq }) => seq > after),
    [Symbol.asyncDispose]: () => egress[Symbol.asyncDispose](),
  }
}

const deniedMax = 1_000

function credentialOf({ scope, destination }: KeyUse, llms: WaysOutOptions["llms"]): Credential {
  if (scope === "llm:anthropic" || scope === "llm:openai") return { scope, destination: destination ?? llms[scope] }
  if (destination === undefined)
    throw new Fault("invalid", `${scope} needs a destination`, { hint: "github.com, or github.com/acme/widgets" })
  return { scope, destination }
}
