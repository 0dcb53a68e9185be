import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { urlOf } from "../control/address.ts"
import { flag } from "../arguments/flag.ts"
import { withRunner } from "../desk.ts"
import { readHolder } from "../lifecycle/pid-file.ts"
import { record } from "../terminal/table.ts"
import { ageText } from "../terminal/units.ts"
import { verb } from "../verb.ts"

const status = verb({
  name: "status",
  group: "Warren itself",
  doc: "How the runner is, and what it lacks.",
  examples: ["warren status", "warren status --json"],
  flags: {},
  words: {},
  async run(_, desk) {
    const { home } = await desk.place()
    const holder = readHolder(home)
    const health = await withRunner(desk, (runner) => runner.call("health.check", {}))
    const process = holder ? { pid: holder.pid, port: holder.port, isDaemon: holder.isDaemon } : {}
    await desk.output.show({ home, ...process, runner: health }, () =>
      [
        record({
          state: desk.output.paint(health.status === "ok" ? "green" : "yellow", health.status),
          "running for": ageText(health.startedAt),
          address: holder && urlOf(desk.terminal.env, holder.port),
          data: home,
          user: health.user,
          processes: `runner ${health.pid}${holder ? `, kept by ${holder.pid}${holder.isDaemon ? " (daemon)" : ""}` : ""}`,
          driver: health.driver,
          tools: Object.entries(health.tools)
            .map(([name, isOn]) => `${name} ${isOn ? "on" : "off"}`)
            .join(", "),
          sessions: `${health.sessions.running} running, ${health.sessions.all} in all`,
          version: `${health.version} (${health.build})`,
        }),
        ...health.degraded.map(({ code, detail }) => `${desk.output.paint("yellow", `less: ${code}`)}: ${detail}`),
      ].join("\n"),
    )
  },
})

const doctor = verb({
  name: "doctor",
  group: "Warren itself",
  doc: "What this machine lacks for sandboxes, with the command that fixes it.",
  examples: ["warren doctor", "warren doctor --security"],
  flags: { security: flag.on("Also how well the machine itself keeps its users apart, and what to do about it.") },
  words: {},
  async run({ flags }, desk) {
    const asked = [...(flags.json ? ["--json"] : []), ...(flags.security ? ["--security"] : [])]
    const child = spawn(process.execPath, [join(desk.programs, "doctor.js"), ...asked], { stdio: "inherit" })
    const [code] = (await once(child, "exit")) as [number | null]
    return code ?? 1
  },
})

export const statusVerbs = [status, doctor]
