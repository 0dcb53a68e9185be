import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { connect } from "node:net"
import { join } from "node:path"
import type { Writable } from "node:stream"
import type { Clock } from "@warren/base/clock.ts"
import type { Machine } from "@warren/protocol/launcher/machine.ts"
import type { HeldSocket } from "./held-socket.ts"
import { environmentOf, type Identity } from "./identity.ts"

/** What the control plane may be told through the launcher's own environment. */
const passedOn =
  /^(WARREN_(LISTEN|PUBLIC_URL|DATABASE|GATEWAY_DOMAIN|REQUESTS_PER_MINUTE|AUDIT_MAX|OIDC_\w+|DRAIN_S)|OTEL_EXPORTER_OTLP_ENDPOINT)$/

interface Place {
  readonly machine: Machine
  readonly account: Identity
  readonly port: number
  /** Where it listens, if that is kept for it. */
  readonly socket: HeldSocket | undefined
  readonly programs: string
  readonly env: NodeJS.ProcessEnv
}

/** As systemd gives sockets. Which process they are for is said by the one that becomes it: nobody knows its number before. */
const givenSocket = { LISTEN_FDS: "1", LISTEN_FDNAMES: "http" }
const forItself = ["/bin/sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"]

/** The control plane, under its own account and with no right besides. What it says is ours to show: it has no user's data. */
export function spawnControl({ machine, account, port, socket, programs, env }: Place): ChildProcess {
  const become = ["--reuid", String(account.uid), "--regid", String(account.gid), "--clear-groups"]
  const without = ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs"]
  const program = [...(socket ? forItself : []), process.execPath, join(programs, "control.js")]
  const argv = [...become, ...without, "--pdeathsig", "TERM", "--", ...program]
  const said = Object.fromEntries(Object.entries(env).filter(([key]) => passedOn.test(key)))
  const settings = {
    WARREN_USERS: "many",
    WARREN_HOME: machine.machine,
    WARREN_PORT: String(port),
    WARREN_RUNNERS: join(machine.run, "{user}", "control.sock"),
    ...(socket ? givenSocket : {}),
  }
  return spawn("setpriv", argv, {
    cwd: "/",
    env: { ...said, ...environmentOf(account), ...settings },
    // Node takes its own sockets here, which its types do not know.
    stdio: ["ignore", "inherit", "inherit", ...(socket ? [socket.handle as Writable] : [])],
  })
}

const lookAgainMs = 20

/** Resolves when it answers: that somebody could connect says nothing, where its place is kept for it. */
export async function untilAnswers(port: number, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!(await answers(port, signal))) await clock.sleep(lookAgainMs, signal)
}

/** Whatever it answers. */
async function answers(port: number, signal: AbortSignal): Promise<boolean> {
  signal.throwIfAborted()
  const socket = connect(port, "127.0.0.1")
  const gone = (): void => void socket.destroy()
  signal.addEventListener("abort", gone, { once: true })
  try {
    socket.write("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    return await Promise.race([once(socket, "data").then(() => true), once(socket, "close").then(() => false)])
  } catch {
    return false
  } finally {
    signal.removeEventListener("abort", gone)
    socket.destroy()
  }
}
