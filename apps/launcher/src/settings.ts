import { count, text } from "@warren/base/settings.ts"
import { machineSettings } from "@warren/protocol/launcher/machine.ts"

export const settings = {
  ...machineSettings,
  port: count("WARREN_PORT", 7777, "The port of the control plane that is kept running; 0: none is.", {
    min: 0,
    max: 65_535,
  }),
  listen: text("WARREN_LISTEN", "127.0.0.1", "The address of the control plane that is kept running."),
}
