import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { ServiceName } from "@warren/protocol/user-plane/services.ts"
import { targetOf } from "../egress/host.ts"
import { Policy } from "../egress/policy.ts"
import type { SessionRecord } from "../sessions/session-record.ts"
import type { Sessions } from "../sessions/sessions.ts"
import type { Terminals } from "../terminals/terminals.ts"
import { recipes } from "./recipes.ts"

interface InstallerParts {
  readonly sessions: Sessions
  readonly terminals: Terminals
  /** The folder of the recipes that come with Warren: the script that makes an image of it serves a session, too. */
  readonly recipes: string
}

const httpsPort = 443
/** One that fails stays for a moment: who comes to look an instant later is to see why. */
const lingering = `sh -c "$WARREN_INSTALL"; code=$?; [ "$code" = 0 ] || sleep 3; exit "$code"`
const size = { cols: 100, rows: 30 }

/** Fetches the programs of services into sessions whose image lacks them, as their own user and by their own way out. */
export class Installer {
  readonly #parts: InstallerParts

  constructor(parts: InstallerParts) {
    this.#parts = parts
  }

  /** Under way when it resolves; asked twice, it is one. */
  async install(session: string, name: ServiceName, signal: AbortSignal): Promise<{ terminal: string }> {
    const { install, hint } = recipes[name]
    if (!install) throw new Fault("unsupported", `${name} cannot be installed by a click`, { hint })
    checkReaches(this.#parts.sessions.record(session), install.host)
    const script = await readFile(join(this.#parts.recipes, install.script), "utf8")
    const terminal = `install-${name}`
    const env = { WARREN_INSTALL: script }
    await this.#parts.terminals.open({ session, name: terminal, cmd: lingering, env, ...size }, signal)
    return { terminal }
  }
}

/** Better told before than by a program that waits for an answer. */
function checkReaches({ plan, reach }: SessionRecord, host: string): void {
  if (plan.network === "none") {
    throw new Fault("unsupported", "this session has no network, so nothing can be fetched into it", {
      hint: "start a session from an image that has it, such as `editor`",
    })
  }
  if (plan.network !== "proxy") return
  try {
    new Policy({ mode: reach.access, allow: [...reach.allow] }).checkTarget(targetOf(host, httpsPort))
  } catch (cause) {
    throw new Fault("forbidden", `this session may not reach ${host}, where it comes from`, {
      hint: `allow ${host} in its network, then try again`,
      subject: `host:${host}`,
      cause,
    })
  }
}
