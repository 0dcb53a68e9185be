import { homedir } from "node:os"
import { join } from "node:path"
import { text } from "@warren/base/settings.ts"

/** Where processes find each other: the layout below WARREN_HOME is a wire like any other. */
export const homeSetting = text(
  "WARREN_HOME",
  join(process.env["XDG_DATA_HOME"] || join(homedir(), ".local", "share"), "warren"),
  "Where Warren keeps everything.",
)

export const tokenFileOf = (home: string): string => join(home, "control", "token")
export const runnerRootOf = (home: string): string => join(home, "runner")
export const rpcSocketOf = (home: string): string => join(runnerRootOf(home), "ipc", "rpc.sock")
