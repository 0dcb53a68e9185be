import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { adapterOf } from "@warren/agents/adapters.ts"
import { systemClock } from "@warren/base/clock.ts"
import { Fault, isCancellation } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Bootstrap } from "@warren/protocol/bootstrap.ts"
import { HubClient } from "@warren/protocol/hub/hub-client.ts"
import { ToolDoor } from "../tools/tool-door.ts"
import { wayTo } from "./dial.ts"
import { GitLook } from "./git-look.ts"
import { Supervisor } from "./supervisor.ts"

/** What the hub has not heard yet when it is over is worth this long. */
const deliverMs = 2_000

/** Drives the agent until it is replaced, told to stop, or the signal comes. */
export async function hubMode(bootstrap: Bootstrap, log: Log, signal: AbortSignal, ready: () => void): Promise<void> {
  const { hub, agent, workspaceRoot } = bootstrap
  if (!agent) throw new Fault("invalid", "the bootstrap names no agent")
  const stop = new AbortController()
  const leave = new AbortController()
  await using way = await wayTo(hub.url)
  // Beside its own program: outside of what the agent works on.
  const folder = dirname(process.argv[1] ?? "/tmp/.warren/supervisor.mjs")
  const doorPath = doorFor(hub.url)
  // How the agent's programs find its tools: this program with `--tools`, and where it then asks.
  const env = { ...process.env, WARREN_TOOLS: doorPath, WARREN_TOOLS_PROGRAM: process.argv[1] }
  const adapter = adapterOf(agent, { clock: systemClock, env, cwd: workspaceRoot, folder })
  const look = new GitLook(agent.cwd ?? workspaceRoot, process.env)
  const supervisor = new Supervisor({ adapter, clock: systemClock, look, log, stop: () => stop.abort() })
  await using _ = await ToolDoor.open(doorPath, (...asked) => supervisor.ask(...asked))
  const client = new HubClient({ link: supervisor.link, dial: way.dial, token: hub.token, clock: systemClock, log })
  const visits = client.run(leave.signal).finally(() => stop.abort())
  visits.catch(() => undefined)
  ready()
  await supervisor.start()
  await aborted(AbortSignal.any([signal, stop.signal]))
  await supervisor[Symbol.asyncDispose]()
  await supervisor.delivered(AbortSignal.any([AbortSignal.timeout(deliverMs)]))
  leave.abort(new Fault("cancelled", "it is over"))
  await visits.catch((failure: unknown) => {
    if (!isCancellation(failure)) throw failure
  })
}

/** Beside the place where the hub comes, or, where it is gone to, one of its own. */
function doorFor(hub: string): string {
  const [, path] = /^listen:(.+)\.sock$/.exec(hub) ?? []
  return path === undefined ? join(tmpdir(), `warren-tools-${process.pid}.sock`) : `${path}.tools.sock`
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    signal.addEventListener("abort", () => resolve(), { once: true })
  })
}
