import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { readFile } from "node:fs/promises"
import { load } from "@warren/base/settings.ts"
import { tokenFileOf } from "@warren/protocol/places.ts"
import { settings } from "../apps/control/src/settings.ts"
import { prepare } from "./prepare.ts"

const { home, port } = load(settings, process.env)
await prepare("start")

const readyMs = 20_000
const stopMs = 5_000
const children: ChildProcess[] = []
let isStopping = false

/** Runs one of Warren's processes. When one ends by itself, all end: half a Warren helps nobody. */
function run(app: string): ChildProcess {
  const child = spawn(process.execPath, [`dist/${app}.js`], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, WARREN_HOME: home, WARREN_PORT: String(port) },
  })
  children.push(child)
  child.stdout?.resume()
  child.once("exit", (code, signal) => {
    if (isStopping) return
    console.error(`Warren's ${app} ended unexpectedly (${signal ?? `exit code ${code}`}). See ${home}/runner/logs.`)
    void stop(1)
  })
  return child
}

async function stop(exitCode: number): Promise<void> {
  if (isStopping) return
  isStopping = true
  await Promise.all(children.map(end))
  process.exit(exitCode)
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, "exit")
  child.kill("SIGTERM")
  const force = setTimeout(() => child.kill("SIGKILL"), stopMs)
  await gone
  clearTimeout(force)
}

/** Asks, as the printed call does, until the runner has answered through the control plane, or the time is up. */
async function answers(url: string): Promise<void> {
  const deadline = Date.now() + readyMs
  while (!isStopping) {
    const token = await readFile(tokenFileOf(home), "utf8").catch(() => "")
    const headers = { authorization: `Bearer ${token.trim()}` }
    const answer = await fetch(url, { headers }).catch(() => undefined)
    if (answer?.ok) return
    if (Date.now() > deadline) throw new Error(`Warren did not answer at ${url} within ${readyMs / 1000} s`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => void stop(0))
run("runner")
run("control")
const url = `http://localhost:${port}`
await answers(`${url}/v1/health`)
if (!isStopping) {
  console.log(`
Warren is running: ${url}
Its data is in ${home}. Stop it with Ctrl-C.

Try it:

    curl -H "Authorization: Bearer $(cat ${tokenFileOf(home)})" ${url}/v1/health

The API is described at ${url}/v1/openapi.json`)
}
