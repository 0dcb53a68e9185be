import { once } from "node:events"
import { join } from "node:path"
import { build } from "@warren/base/build-info.ts"
import { systemClock as clock } from "@warren/base/clock.ts"
import { refuseDebuggers } from "@warren/base/debugger.ts"
import { Fault } from "@warren/base/fault.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { load } from "@warren/base/settings.ts"
import { holdLock } from "@warren/base/single-instance.ts"
import { standardLines } from "@warren/base/standard-lines.ts"
import { launcherSocketOf } from "@warren/protocol/launcher/machine.ts"
import { spawnControl, untilAnswers as untilControlAnswers } from "./control-process.ts"
import { openDoor } from "./door.ts"
import { prepareMachine } from "./first-use.ts"
import { holdSocket } from "./held-socket.ts"
import { KeptProcess } from "./kept-process.ts"
import { Launcher } from "./launcher.ts"
import { spawnRunner, untilAnswers } from "./runner-process.ts"
import { settings } from "./settings.ts"

refuseDebuggers()
const config = load(settings, process.env)
const log = createLog(standardLines(process.stdout)).with({ app: "launcher" })
if (process.getuid?.() !== 0) {
  throw new Fault("forbidden", "the launcher starts runners as their users, which only root can", {
    hint: "sudo warren launcher",
  })
}
process.umask(0o022)
const told = new AbortController()
for (const name of ["SIGTERM", "SIGINT"]) process.once(name, () => told.abort(new Fault("cancelled", name)))

await using scope = new Scope()
const { port, listen, ...machine } = config
const programs = import.meta.dirname
const account = await prepareMachine(machine)
// Who can read a lock's file can take it.
process.umask(0o077)
scope.use(holdLock(join(machine.run, "launcher.lock"), "the launcher of this machine"))
process.umask(0o022)
const place = { machine, controlGroup: account.gid, programs, env: process.env }
const launcher = scope.use(
  new Launcher({
    machine,
    spawn: (user) => spawnRunner(place, user),
    ready: (user, signal) => untilAnswers(machine, user, clock, signal),
    ...{ clock, log },
  }),
)
try {
  if (port > 0) {
    const socket = holdSocket(listen, port)
    if (socket) scope.use(socket)
    const control = scope.use(
      new KeptProcess({
        name: "the control plane",
        spawn: () => spawnControl({ machine, account, port, socket, programs, env: process.env }),
        ready: (signal) => untilControlAnswers(port, clock, signal),
        ...{ clock, log },
      }),
    )
    await control.start(told.signal)
  }
  await launcher.startAll(told.signal)
  const door = { path: launcherSocketOf(machine), group: account.gid }
  scope.use(await openDoor({ ...door, handlers: launcher.handlers(), log }))
  log("info", "launcher.ready", { socket: door.path, pid: process.pid, build })
  if (!told.signal.aborted) await once(told.signal, "abort")
} catch (thrown) {
  if (!told.signal.aborted) throw thrown
}
log("info", "launcher.stopping")
