import { randomInt } from "node:crypto"
import { readFileSync } from "node:fs"
import { Fault } from "@warren/base/fault.ts"
import { initPid, launcherPids, pidsIn } from "@warren/drivers/oci/testing/invariants.ts"
import { randomFrom } from "@warren/drivers/oci/testing/random.ts"
import { setTimeout as pause } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Home } from "./home.ts"
import { lastingLeaks, lookAt } from "./machine.ts"
import { Runner } from "./runner.ts"
import type { SessionData, Talk } from "./talk.ts"

const seed = Number(process.env["WARREN_SEED"] ?? randomInt(2 ** 31))
const creates = 24

describe.skipIf(process.getuid?.() !== 0)("a runner whose helpers are killed", () => {
  const home = new Home()
  let runner: Runner
  let talk: Talk

  beforeAll(async () => {
    runner = await Runner.start(home)
    ;({ talk } = runner)
  })
  afterAll(async () => {
    await runner[Symbol.asyncDispose]()
    await home[Symbol.asyncDispose]()
  })

  const sandboxOf = (id: string): string => lookAt(home).sessions.find((one) => one.id === id)?.sandbox ?? ""

  /** The first event about a session that finds it in a state. */
  async function becomes(id: string, state: SessionData["state"]): Promise<SessionData> {
    for await (const { item } of talk.feed("session.follow", { after: 0 }))
      if (item.id === id && item.session?.state === state) return item.session
    throw new Error("the events ended")
  }

  it("says at once that a session died with its init, and gives its files back", async () => {
    const { id } = await talk.call("session.create", { name: "mortal" })
    await talk.write(id, "/home/user/note", "kept")
    const failed = becomes(id, "failed")
    const init = initPid(home.driverRoot, sandboxOf(id))
    const begun = performance.now()
    process.kill(init, "SIGKILL")
    expect(await failed).toMatchObject({ state: "failed", reason: "died" })
    const tookMs = performance.now() - begun
    console.log(`faults: a dead init was noticed after ${Math.round(tookMs)} ms`)
    expect(tookMs).toBeLessThan(1_000)
    await expect(talk.run(id, "true")).rejects.toMatchObject({ code: "conflict" })
    expect(await lastingLeaks(home)).toEqual([])
    expect(await talk.call("session.restore", { id })).toMatchObject({ state: "running" })
    expect(await talk.read(id, "/home/user/note")).toBe("kept")
    // Twice is not once too often.
    process.kill(initPid(home.driverRoot, sandboxOf(id)), "SIGKILL")
    await becomes(id, "failed")
    await talk.call("session.delete", { id })
    expect(await lastingLeaks(home)).toEqual([])
  })

  it("ends what is under way in a session whose init dies", async () => {
    const { id } = await talk.call("session.create", {})
    await using long = await talk.open("process.exec", { session: id, cmd: "echo on; sleep 100000" })
    await long.next()
    process.kill(initPid(home.driverRoot, sandboxOf(id)), "SIGKILL")
    const rest = async (): Promise<void> => {
      while ((await long.next()) !== undefined);
    }
    await expect(rest()).rejects.toMatchObject({ code: "unavailable" })
    await becomes(id, "failed")
    await talk.call("session.delete", { id })
  })

  it(`fails creates whose launcher or runtime is killed, and nothing else (seed ${seed})`, async () => {
    const random = randomFrom(seed)
    const outcomes = new Map<string, number>()
    const count = (what: string): void => void outcomes.set(what, (outcomes.get(what) ?? 0) + 1)
    for (let round = 0; round < creates; round++) {
      const where = `round ${round} of seed ${seed}`
      const begun = { value: true }
      const created = talk.call("session.create", { name: `c${round}` }).then(
        ({ id }) => ({ id, code: undefined }),
        (failure: unknown) => ({ id: undefined, code: Fault.from(failure).code }),
      )
      void created.then(() => (begun.value = false))
      if (round % 2 === 0) {
        await pause(random() * 40)
        for (const pid of launcherPids(home.driverRoot)) tryKill(pid)
      } else while (begun.value && !killRuntime(home.driverRoot)) await new Promise(setImmediate)
      const { id, code } = await created
      count(`${round % 2 === 0 ? "launcher" : "runtime"}: ${code ?? "made"}`)
      expect([undefined, "unavailable", "internal"], where).toContain(code)
      if (id === undefined) expect(await talk.sessions(), where).toEqual([])
      else {
        expect(await talk.run(id, "echo on"), where).toMatchObject({ text: "on\n" })
        await talk.call("session.delete", { id })
      }
      expect(await lastingLeaks(home), where).toEqual([])
    }
    const { id } = await talk.call("session.create", {})
    expect(await talk.run(id, "echo on")).toMatchObject({ text: "on\n" })
    await talk.call("session.delete", { id })
    console.log(`faults: ${[...outcomes].map(([what, times]) => `${what} ${times}`).join(", ")}`)
    expect([...outcomes.keys()].some((what) => what.startsWith("launcher: u"))).toBe(true)
  })

  it("takes back what it had begun for a session that cannot be as asked for", async () => {
    const proxy = { mode: "proxy" as const, access: "list" as const }
    const asked = [
      { network: { ...proxy, allow: ["this is no host"] } },
      { keys: [{ scope: "git:read" as const }] },
      { image: "no-such-image" },
      { from: "snp_00000000000000000000" },
    ]
    for (const wishes of asked) {
      const refused = await talk.call("session.create", wishes).catch((failure: unknown) => Fault.from(failure).code)
      expect(["invalid", "not_found"]).toContain(refused)
      expect(await talk.sessions()).toEqual([])
      expect(await lastingLeaks(home)).toEqual([])
    }
  })

  it("says of a command that it took too much memory, and the session goes on", async () => {
    const limits = { memoryBytes: 32 * 1024 * 1024 }
    const { id } = await talk.call("session.create", { limits })
    expect(await talk.run(id, "exec tail /dev/zero")).toMatchObject({ reason: "oom" })
    expect((await talk.call("session.get", { id })).state).toBe("running")
    expect(await talk.run(id, "echo on")).toMatchObject({ text: "on\n", exitCode: 0 })
    // However many want too much at once, it is never init that the kernel takes.
    const hold = "(head -c 6000000 /dev/zero; sleep 0.1) | tail &"
    await talk.run(id, `for i in 1 2 3 4 5 6 7 8; do ${hold} done; wait`)
    const { oomKills } = await talk.call("session.stats", { id })
    expect(oomKills).toBeGreaterThan(1)
    expect(await talk.call("session.get", { id })).toMatchObject({ state: "running" })
    expect(await talk.run(id, "echo on")).toMatchObject({ text: "on\n", exitCode: 0 })
    await talk.call("session.delete", { id })
    expect(await lastingLeaks(home)).toEqual([])
  })
})

/** Whether one was there to be killed. */
function killRuntime(root: string): boolean {
  const found = pidsIn(root).filter((pid) => commandOf(pid).includes("--cgroup-manager=disabled"))
  for (const pid of found) tryKill(pid)
  return found.length > 0
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8")
  } catch {
    return ""
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // It has ended by itself.
  }
}
