import { count } from "@warren/base/settings.ts"
import { machineSettings } from "@warren/protocol/launcher/machine.ts"

export const settings = {
  ...machineSettings,
  port: count("WARREN_PORT", 7777, "The port of the control plane that is kept running; 0: none is.", {
    min: 0,
    max: 65_535,
  }),
}
