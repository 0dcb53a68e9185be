import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { verb } from "../verb.ts"

export const launcherVerb = verb({
  name: "launcher",
  group: "Warren itself",
  doc: "Where there is no systemd: keep the control plane, under its own account, and the runners of all users running, in the foreground. For root.",
  examples: ["sudo warren launcher"],
  flags: {},
  words: {},
  async run(_, desk) {
    if (process.getuid?.() !== 0) {
      throw new Fault("forbidden", "only root can start runners of others", { hint: "sudo warren launcher" })
    }
    const child = spawn(process.execPath, [join(desk.programs, "launcher.js")], {
      cwd: "/",
      env: desk.terminal.env,
      stdio: ["ignore", "inherit", "inherit"],
    })
    using _taken = desk.interrupts.take(() => child.kill("SIGTERM"))
    const [code] = (await once(child, "exit")) as [number | null]
    return code ?? 1
  },
})
