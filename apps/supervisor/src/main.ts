import { setTimeout as sleep } from "node:timers/promises"
import { createLog, type Log } from "@warren/base/log.ts"
import { refuseDebuggers } from "@warren/base/debugger.ts"
import { load } from "@warren/base/settings.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { readBootstrap, readBootstrapFile, type Bootstrap } from "@warren/protocol/bootstrap.ts"
import { hubMode } from "./hub/hub-mode.ts"
import { settings } from "./settings.ts"
import { accountOf } from "./stdio/account.ts"
import { hear, speak } from "./stdio/speak.ts"
import { toolsMode } from "./tools/tools-mode.ts"
import { StdioMode } from "./stdio/stdio-mode.ts"

const bootstrapMs = 10_000
const usage = "warren-supervisor --stdio | --tools | --bootstrap-stdin | --bootstrap-file PATH"
refuseDebuggers()
const config = load(settings, process.env)
const log = createLog((line) => void process.stderr.write(`[supervisor] ${line}`)).with({ app: "supervisor" })
const stop = new AbortController()
for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(name, () => stop.abort())
// A host that is gone is noticed where it is read from.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined)

try {
  if (process.argv.includes("--stdio")) await stdio(log)
  else if (process.argv.includes("--tools")) await toolsMode(config.tools, process.stdin, process.stdout)
  else await hubMode(await bootstrap(), log, stop.signal, () => void speak(process.stdout, { ev: "system:ready" }))
  process.exit(0)
} catch (failure) {
  log("error", "supervisor.failed", { code: Fault.from(failure).code, message: messageOf(failure) })
  process.exit(1)
}

async function bootstrap(): Promise<Bootstrap> {
  if (process.argv.includes("--bootstrap-stdin")) return Promise.race([readBootstrap(process.stdin), late()])
  const at = process.argv.indexOf("--bootstrap-file")
  const path = at < 0 ? config.bootstrapFile : process.argv[at + 1]
  if (!path) throw new Fault("invalid", "it was not told what to do", { hint: usage })
  return readBootstrapFile(path)
}

/** Whoever started it may have died before it said what for. */
async function late(): Promise<never> {
  await sleep(bootstrapMs, undefined, { ref: false })
  throw new Fault("timeout", "the bootstrap did not come")
}

async function stdio(to: Log): Promise<void> {
  const account = config.user === "" || process.getuid?.() !== 0 ? undefined : accountOf(config.user)
  const mode = new StdioMode({
    ...{ cmd: config.cmd, args: words(config.args), account, folder: config.folder, env: process.env, log: to },
    emit: (event) => speak(process.stdout, event),
  })
  stop.signal.addEventListener("abort", () => process.stdin.destroy(), { once: true })
  await speak(process.stdout, { ev: "system:ready" })
  try {
    for await (const line of hear(process.stdin)) {
      if (typeof line === "string") await mode.hear(line)
      else await speak(process.stdout, { ev: "error", cmd: null, code: "limit", message: "the line is too long" })
    }
  } catch (failure) {
    if (!stop.signal.aborted) throw failure
  }
  await mode[Symbol.asyncDispose]()
}

function words(value: string): string[] {
  const trimmed = value.trim()
  if (!trimmed.startsWith("[")) return trimmed === "" ? [] : trimmed.split(/\s+/)
  const list: unknown = JSON.parse(trimmed)
  if (!Array.isArray(list) || !list.every((word) => typeof word === "string"))
    throw new Fault("invalid", "AGENT_ARGS is no list of words")
  return list
}
