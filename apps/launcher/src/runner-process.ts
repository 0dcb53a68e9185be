import { spawn, type ChildProcess } from "node:child_process"
import { lstat } from "node:fs/promises"
import { join } from "node:path"
import type { Clock } from "@warren/base/clock.ts"
import { connectUnix } from "@warren/base/unix-socket.ts"
import { groupOf, runFolderOf, type Machine } from "@warren/protocol/launcher/machine.ts"
import { dataFolderOf } from "@warren/protocol/launcher/record.ts"
import { controlKeyOf } from "@warren/protocol/places.ts"
import { delegateGroups, joinGroups, makeSocketFolder } from "./ground.ts"
import { commandAs, environmentOf } from "./identity.ts"
import { knownUser } from "./known-user.ts"

/** What an administrator may say to all runners, through the launcher's own environment. */
const passedOn =
  /^WARREN_(DRIVER|IMAGE|SESSIONS_MAX|POOL_MB|POOL_LEAST|ANTHROPIC_URL|OPENAI_URL|EMBEDDINGS_\w+|GATEWAY_(DOMAIN|HOSTS))$/

interface Place {
  readonly machine: Machine
  /** The number of the control plane's group. */
  readonly controlGroup: number
  readonly programs: string
  readonly env: NodeJS.ProcessEnv
}

export const controlSocketIn = (folder: string): string => join(folder, "control.sock")

/** Starts a user's runner as that user and as nobody else: who they are is read anew each time. */
export function spawnRunner({ machine, controlGroup, programs, env }: Place, name: string): ChildProcess {
  const user = knownUser(machine, name)
  const folder = runFolderOf(machine, name)
  makeSocketFolder(folder, user, controlGroup)
  const groups = delegateGroups(user)
  const data = dataFolderOf(user)
  const settings = {
    WARREN_HOME: data,
    WARREN_CONTROL_SOCKET: controlSocketIn(folder),
    WARREN_GATEWAY_SOCKET: join(folder, "gateway.sock"),
    WARREN_CONTROL_GROUP: String(controlGroup),
    WARREN_CONTROL_KEY: controlKeyOf(machine.machine),
    ...(groups.version === 1 ? { WARREN_CGROUP: groupOf(name) } : {}),
  }
  const said = Object.fromEntries(Object.entries(env).filter(([key]) => passedOn.test(key)))
  const child = spawn(...commandAs(user, data, [process.execPath, join(programs, "runner.js")]), {
    cwd: "/",
    env: { ...said, ...environmentOf(user), ...settings },
    stdio: "ignore",
  })
  if (child.pid !== undefined) joinGroups(groups, child.pid)
  return child
}

const lookAgainMs = 20

/** Resolves when somebody listens on that user's socket, and it is theirs. */
export async function untilAnswers(machine: Machine, name: string, clock: Clock, signal: AbortSignal): Promise<void> {
  const path = controlSocketIn(runFolderOf(machine, name))
  const { uid } = knownUser(machine, name)
  for (;;) {
    signal.throwIfAborted()
    const found = await lstat(path).catch(() => undefined)
    if (found?.isSocket() && found.uid === uid && (await canConnect(path, signal))) return
    await clock.sleep(lookAgainMs, signal)
  }
}

async function canConnect(path: string, signal: AbortSignal): Promise<boolean> {
  const socket = await connectUnix(path, signal).catch(() => undefined)
  socket?.destroy()
  return socket !== undefined
}
