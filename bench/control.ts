import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { resolve } from "node:path"
import { freePort } from "@warren/base/testing/free-port.ts"
import { tokenFileOf } from "@warren/protocol/places.ts"
import { HttpConnection, portMark, requestText } from "./http-connection.ts"
import type { Context } from "./metric.ts"
import { Runner } from "./runner.ts"

const readyMs = 20_000

/** A real control plane in a process of its own, in front of a runner. */
export interface ControlPlane {
  readonly port: number
  readonly token: string
  readonly pid: number
}

export async function startControl(context: Context, runner: Runner): Promise<ControlPlane> {
  const program = resolve("dist/control.js")
  if (!existsSync(program)) context.skip("dist/control.js is not there: npm run build")
  const port = await freePort()
  const env = { ...process.env, WARREN_HOME: runner.home, WARREN_PORT: String(port) }
  const child = spawn(process.execPath, [...process.execArgv, program], { env, stdio: ["ignore", "ignore", "ignore"] })
  const gone = once(child, "exit")
  context.scope.defer(async () => {
    child.kill("SIGTERM")
    await gone
  })
  const deadline = performance.now() + readyMs
  for (;;) {
    try {
      const token = readFileSync(tokenFileOf(runner.home), "utf8").trim()
      const headers = { authorization: `Bearer ${token}` }
      const { ok } = await fetch(`http://127.0.0.1:${port}/v1/health`, { headers })
      if (ok) return { port, token, pid: child.pid ?? 0 }
    } catch (failure) {
      if (performance.now() > deadline) throw failure
    }
    await new Promise((wait) => setTimeout(wait, 20))
  }
}

/** Asks for `true` in a session, through HTTP, control plane and runner. */
export async function openExec(context: Context): Promise<HttpConnection> {
  const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
  const { port, token } = await startControl(context, runner)
  const { id } = await runner.create({ network: { mode: "none" } })
  const request = requestText("POST", `/v1/sessions/${id}/exec`, token, JSON.stringify({ argv: ["true"] }))
  return context.scope.use(await HttpConnection.open(port, request.replace(portMark, String(port))))
}
