import { randomInt } from "node:crypto"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { record } from "../security/results.ts"
import { ManyUsers, pidsOf } from "../users/machine.ts"
import { faultOf } from "./cases.ts"
import { buildInto } from "./fault-build.ts"
import { namesOf } from "./names.ts"
import type { Strike } from "./trial.ts"

/** WARREN_FAILPOINTS=all: at each name, with the control plane and with a runner; otherwise at one that is drawn from WARREN_SEED. */
const seed = Number(process.env["WARREN_SEED"] ?? randomInt(2 ** 31))
/** The control plane is started first, then the runner of the one user there is. */
const all: Strike[] = namesOf("launcher").flatMap((name) => [1, 2].map((pass) => ({ name, pass })))
const strikes = process.env["WARREN_FAILPOINTS"] === "all" ? all : all.slice(seed % all.length).slice(0, 1)
/** Much else goes on, and what was told to end may take its time. */
const patienceMs = 60_000

describe.skipIf(process.getuid?.() !== 0)("a launcher that dies at a failpoint", { timeout: 300_000 }, () => {
  let machine: ManyUsers
  let [alice, token] = ["", ""]
  const readyMs: number[] = []

  beforeAll(async () => {
    machine = await ManyUsers.open()
    alice = machine.name("a")
    expect((await machine.cli.run(["user", "create", alice])).stderr).toBe("")
    token = await machine.tokenOf(alice)
    expect((await machine.ask("/v1/sessions", { token, body: { name: "mine" } })).body).toMatchObject({
      state: "running",
    })
    const write = { argv: ["sh", "-c", "echo kept > /home/user/note"] }
    expect((await machine.ask("/v1/sessions/mine/exec", { token, body: write })).body["exitCode"]).toBe(0)
    await buildInto(machine.at("programs"), "launcher")
    await machine.stopLauncher()
  }, 180_000)
  afterAll(async () => {
    if (readyMs.length > 0) {
      const slowest = Math.round(Math.max(...readyMs))
      console.log(
        `failpoints: ${readyMs.length} deaths of a launcher, ready again after at most ${slowest} ms, ${seed}`,
      )
      record("failpoints-launcher", { cases: readyMs.length, seed, readyMsMax: slowest })
      await machine.ask("/v1/sessions/mine", { token, method: "DELETE" })
    }
    await machine?.[Symbol.asyncDispose]()
  }, 120_000)

  it.each(strikes)("$name:$pass: the next one has everything once, and nothing is lost", async (strike) => {
    const mark = mkdtempSync(join(tmpdir(), "wm-"))
    try {
      if (machine.launcher.child.exitCode === null) await machine.stopLauncher()
      const env = { FAULT: faultOf(strike), FAULT_FOLDER: mark }
      await machine.cli.with(env).start("launcher").ended
      expect(existsSync(join(mark, "fired")) && readFileSync(join(mark, "fired"), "utf8")).toBe(strike.name)
      const begun = performance.now()
      await machine.startLauncher()
      readyMs.push(performance.now() - begun)
      await expect.poll(everybody, { timeout: patienceMs }).toEqual({ controls: 1, runners: 1 })
      const read = { argv: ["cat", "/home/user/note"] }
      expect((await machine.ask("/v1/sessions", { token })).body["items"]).toMatchObject([
        { name: "mine", state: "running" },
      ])
      expect((await machine.ask("/v1/sessions/mine/exec", { token, body: read })).body).toMatchObject({
        exitCode: 0,
        stdout: "kept\n",
      })
    } finally {
      rmSync(mark, { recursive: true, force: true })
    }
  })

  /** Those of a launcher that is gone have gone, too. */
  function everybody(): { controls: number; runners: number } {
    return { controls: count(machine.control, "/control.js"), runners: count(alice, "/runner.js") }
  }
})

function count(account: string, program: string): number {
  return pidsOf(account).filter((pid) => isRunning(pid, program)).length
}

/** Not what is about to become it: a shell has its name among its words. */
function isRunning(pid: number, program: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[1]?.endsWith(program) ?? false
  } catch {
    return false
  }
}
