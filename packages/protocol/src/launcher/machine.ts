import { join } from "node:path"
import { text } from "@warren/base/settings.ts"

/** Where a machine with many users has what belongs to none of them. */
export const machineSettings = {
  machine: text(
    "WARREN_MACHINE",
    "/var/lib/warren",
    "With many users: the folder of root's user records and of the control plane's data.",
  ),
  run: text("WARREN_RUN", "/run/warren", "With many users: the folder with a folder of sockets for each of them."),
  controlAccount: text(
    "WARREN_CONTROL_ACCOUNT",
    "warren-control",
    "With many users: the Linux account the control plane runs as; made when it is missing.",
  ),
}

export interface Machine {
  readonly machine: string
  readonly run: string
  readonly controlAccount: string
}

/** Root's: what the launcher knows of users. */
export const recordsOf = ({ machine }: Machine): string => join(machine, "users")
export const launcherSocketOf = ({ run }: Machine): string => join(run, "launcher.sock")
/** A user's sockets: the user's to fill, the control plane's to pass through, closed to everybody else. */
export const runFolderOf = ({ run }: Machine, user: string): string => join(run, user)
/** The user's cgroup, as a path below every hierarchy. */
export const groupOf = (user: string): string => `/warren-${user}`
