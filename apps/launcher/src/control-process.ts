import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { connect } from "node:net"
import { join } from "node:path"
import type { Clock } from "@warren/base/clock.ts"
import type { Machine } from "@warren/protocol/launcher/machine.ts"
import { environmentOf, type Identity } from "./identity.ts"

/** What the control plane may be told through the launcher's own environment. */
const passedOn =
  /^(WARREN_(LISTEN|PUBLIC_URL|DATABASE|GATEWAY_DOMAIN|REQUESTS_PER_MINUTE|AUDIT_MAX|OIDC_\w+|DRAIN_S)|OTEL_EXPORTER_OTLP_ENDPOINT)$/

interface Place {
  readonly machine: Machine
  readonly account: Identity
  readonly port: number
  readonly programs: string
  readonly env: NodeJS.ProcessEnv
}

/** The control plane, under its own account and with no right besides. What it says is ours to show: it has no user's data. */
export function spawnControl({ machine, account, port, programs, env }: Place): ChildProcess {
  const become = ["--reuid", String(account.uid), "--regid", String(account.gid), "--clear-groups"]
  const without = ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs"]
  const argv = [...become, ...without, "--pdeathsig", "TERM", "--", process.execPath, join(programs, "control.js")]
  const said = Object.fromEntries(Object.entries(env).filter(([key]) => passedOn.test(key)))
  const settings = {
    WARREN_USERS: "many",
    WARREN_HOME: machine.machine,
    WARREN_PORT: String(port),
    WARREN_RUNNERS: join(machine.run, "{user}", "control.sock"),
  }
  return spawn("setpriv", argv, {
    cwd: "/",
    env: { ...said, ...environmentOf(account), ...settings },
    stdio: ["ignore", "inherit", "inherit"],
  })
}

const lookAgainMs = 20

export async function untilListens(port: number, clock: Clock, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted()
    const socket = connect(port, "127.0.0.1")
    const isOpen = await once(socket, "connect").then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return
    await clock.sleep(lookAgainMs, signal)
  }
}
