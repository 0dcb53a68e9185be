import { Fault } from "@warren/base/fault.ts"
import { flag, type FlagValues } from "../arguments/flag.ts"
import { forwardedOf } from "../config/forwarding.ts"
import { noRunner, withRunner, type Desk } from "../desk.ts"
import { accountOf } from "./account.ts"
import { startDaemon } from "./daemon.ts"
import { readHolder } from "./pid-file.ts"
import type { Plan } from "./plan.ts"

export const startFlags = {
  daemon: flag.on("Go on in the background."),
  driver: flag.choice(["oci", "process"], "How sandboxes are made, unless a session says."),
  insecure: flag.on("Sandboxes are only processes; agents get no shell and no browser."),
  env: flag.environment("A variable for agents; `SHELL_NAME=VALUE` gives `NAME` to sandboxes instead"),
  envFile: flag.list("FILE", "Variables, one on each line.", { completes: "file" }),
}
type StartFlags = FlagValues<typeof startFlags>

/** What is to be started, from the flags and `runner.toml`. */
export async function planOf(flags: StartFlags, desk: Desk): Promise<Plan> {
  // The arguments may hold keys, and everybody on this machine can list them.
  process.title = "warren start"
  const place = await desk.place()
  if (flags.insecure && flags.driver === "oci")
    throw new Fault("invalid", "--insecure and --driver oci exclude each other")
  const driver = flags.insecure ? "process" : (flags.driver ?? place.driver)
  const account = accountOf(place.account)
  return {
    home: place.home,
    port: place.port,
    isDaemon: false,
    programs: desk.programs,
    settings: {
      ...(driver === undefined ? {} : { WARREN_DRIVER: driver }),
      ...(place.image === undefined ? {} : { WARREN_IMAGE: place.image }),
    },
    forwarded: await forwardedOf(place, flags, desk.terminal.env),
    ...(account === undefined ? {} : { account }),
  }
}

/** Makes sure that there is a runner: one is started in the background when there is none. */
export async function ensureRunner(desk: Desk): Promise<void> {
  const place = await desk.place()
  try {
    await withRunner(desk, (runner) => runner.call("health.check", {}))
  } catch (thrown) {
    if (!(thrown instanceof Fault) || thrown.code !== "unavailable") throw thrown
    if (readHolder(place.home)) throw noRunner(place.home, thrown)
    desk.output.note("No runner is running: starting Warren in the background (stop it with: warren stop).")
    const none = { daemon: true, driver: undefined, insecure: false, env: [], envFile: [] }
    await startDaemon(await planOf(none, desk), desk.signal)
  }
}
