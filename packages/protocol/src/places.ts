import { homedir } from "node:os"
import { join } from "node:path"
import { text } from "@warren/base/settings.ts"

/** Where processes find each other: the layout below WARREN_HOME is a wire like any other. */
export const homeSetting = text(
  "WARREN_HOME",
  join(process.env["XDG_DATA_HOME"] || join(homedir(), ".local", "share"), "warren"),
  "Where Warren keeps everything.",
)

export const controlRootOf = (home: string): string => join(home, "control")
export const tokenFileOf = (home: string): string => join(controlRootOf(home), "token")
/** The public half of the key that statements are signed with. */
export const controlKeyOf = (home: string): string => join(controlRootOf(home), "statement.pub")
export const runnerRootOf = (home: string): string => join(home, "runner")
/** For the control plane: nothing is answered there without a signed statement. */
export const controlSocketOf = (home: string): string => join(runnerRootOf(home), "ipc", "control.sock")
/** HTTP and WebSockets to what runs in the user's sandboxes. */
export const gatewaySocketOf = (home: string): string => join(runnerRootOf(home), "ipc", "gateway.sock")
/** One line, while the gateway is open: how it is reached. */
export const gatewayMarkerOf = (home: string): string => join(runnerRootOf(home), "tmp", "gateway-endpoint")
export const rpcSocketOf = (home: string): string => join(runnerRootOf(home), "ipc", "rpc.sock")

/** Where a driver keeps a user's sandboxes, with the images: whoever makes images beside the runner makes them there. */
export const sandboxesOf = (runnerRoot: string, driver: string): string => join(runnerRoot, "sandboxes", driver)
