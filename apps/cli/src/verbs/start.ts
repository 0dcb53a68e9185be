import { readFileSync } from "node:fs"
import { tokenFileOf } from "@warren/protocol/places.ts"
import { urlOf } from "../control/address.ts"
import type { Desk } from "../desk.ts"
import { planFd, serveVerb, startDaemon } from "../lifecycle/daemon.ts"
import { readHolder } from "../lifecycle/pid-file.ts"
import { Plan } from "../lifecycle/plan.ts"
import { serve } from "../lifecycle/serve.ts"
import { planOf, startFlags } from "../lifecycle/start-plan.ts"
import { stopWarren } from "../lifecycle/stop.ts"
import { verb } from "../verb.ts"

const start = verb({
  name: "start",
  group: "Warren itself",
  doc: "Start Warren: the runner and the control plane, in the foreground unless --daemon.",
  examples: ["warren start --daemon", "warren start --user alice -e OPENAI_API_KEY -e SHELL_NPM_TOKEN=…"],
  flags: startFlags,
  words: {},
  run: async ({ flags }, desk) => startWith(await planOf(flags, desk), flags.daemon, desk),
})

const restart = verb({
  name: "restart",
  group: "Warren itself",
  doc: "Stop Warren if it runs, and start it again. Sandboxes go on meanwhile.",
  examples: ["warren restart --daemon"],
  flags: startFlags,
  words: {},
  async run({ flags }, desk) {
    const plan = await planOf(flags, desk)
    const before = readHolder(plan.home)
    if (before) await stopWarren(plan.home, desk.signal)
    // Who was in the background stays there, where it was found.
    const port = desk.terminal.env["WARREN_PORT"] ? plan.port : (before?.port ?? plan.port)
    return startWith({ ...plan, port }, flags.daemon || before?.isDaemon === true, desk)
  },
})

const serving = verb({
  name: serveVerb,
  group: "This tool",
  doc: "What a daemon runs: it reads its plan from a pipe.",
  examples: ["warren start --daemon"],
  flags: {},
  words: {},
  async run(_, desk) {
    await serveUntilTold(Plan.parse(JSON.parse(readFileSync(planFd, "utf8"))), desk, () => undefined)
  },
})

export const startVerbs = [start, restart, serving]

async function startWith(plan: Plan, isDaemon: boolean, desk: Desk): Promise<void> {
  if (plan.settings["WARREN_DRIVER"] === "process") {
    desk.output.note("Warning: sandboxes are only processes. Do not run what you do not trust.")
  }
  const url = urlOf(desk.terminal.env, plan.port)
  const about = { home: plan.home, url }
  if (isDaemon) {
    using progress = desk.output.progress()
    progress.say("Starting Warren …")
    const { pid, said } = await startDaemon(plan, desk.signal)
    progress[Symbol.dispose]()
    if (said !== "") desk.output.note(said)
    return desk.output.show({ ...about, pid }, () => `${greeting(plan, url)}Stop it with: warren stop`)
  }
  await serveUntilTold(plan, desk, () => {
    void desk.output.show(
      { ...about, pid: process.pid },
      () => `${greeting(plan, url)}Stop it with Ctrl-C.${invitation(plan, url)}`,
    )
  })
}

/** Being told to stop is what it waits for, so that is no failure. */
async function serveUntilTold(plan: Plan, desk: Desk, onReady: () => void): Promise<void> {
  const told = new AbortController()
  using _ = desk.interrupts.take(() => told.abort())
  await serve(plan, told.signal, onReady)
}

function greeting({ home }: Plan, url: string): string {
  return `\nWarren is running: ${url}\nIts data is in ${home}. `
}

function invitation({ home }: Plan, url: string): string {
  return `

Try it:

    npx warren run -- sh -c 'echo $((6*7))'
    curl -H "Authorization: Bearer $(cat ${tokenFileOf(home)})" ${url}/v1/health

The API is described at ${url}/v1/openapi.json`
}
