import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { pidsIn } from "@warren/drivers/oci/testing/invariants.ts"
import { afterAll, describe, expect, it } from "vitest"
import { dist, Home } from "../runner/home.ts"
import { lastingLeaks } from "../runner/machine.ts"
import { Runner } from "../runner/runner.ts"
import { ControlDoor } from "./control-door.ts"
import { Mishap } from "./mishap.ts"

/** What somebody says who does not start. */
async function refusal(starting: Promise<AsyncDisposable>): Promise<string> {
  try {
    await using _ = await starting
    return "it started"
  } catch (failure) {
    return messageOf(failure)
  }
}

async function faultOf(call: Promise<unknown>): Promise<Fault | undefined> {
  return call.then(
    () => undefined,
    (failure: unknown) => Fault.from(failure),
  )
}

/** A file or folder that nobody can write to, root neither. */
class Frozen implements Disposable {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
    execFileSync("mount", ["--bind", path, path])
    execFileSync("mount", ["-o", "remount,ro,bind", path])
  }

  [Symbol.dispose](): void {
    execFileSync("umount", ["-l", this.#path])
  }
}

describe.skipIf(process.getuid?.() !== 0)("a runner whose database cannot be written", { timeout: 120_000 }, () => {
  const home = new Home()
  afterAll(() => home[Symbol.asyncDispose]())

  it("does not start, says why, touches nothing, and starts when it can be", async () => {
    await using first = await Runner.start(home)
    const { id } = await first.talk.call("session.create", { name: "lasting" })
    await first.talk.write(id, "/home/user/note", "kept")
    await first.stop()
    const before = pidsIn(home.driverRoot)
    for (const path of [home.database, dirname(home.database)]) {
      const bytes = readFileSync(home.database)
      using _ = new Frozen(path)
      const words = await refusal(Runner.start(home))
      expect(words, path).toMatch(/Fault: .*(database|lock)/)
      expect(words, path).toMatch(/hint: '.*can be written/)
      expect(readFileSync(home.database).equals(bytes), path).toBe(true)
      expect(pidsIn(home.driverRoot), path).toEqual(before)
    }
    await using again = await Runner.start(home)
    expect(await again.talk.read(id, "/home/user/note")).toBe("kept")
    await again.talk.call("session.delete", { id })
    expect(await lastingLeaks(home)).toEqual([])
  })

  it.each(["EROFS", "EIO"] as const)(
    "while it runs (%s) says so, goes on with the rest, and writes again",
    async (errno) => {
      using mishap = new Mishap()
      await using runner = await Runner.start(home, mishap.env(home.path))
      const { talk } = runner
      const { id } = await talk.call("session.create", { name: "old" })
      mishap.failAt(1, "on", errno)
      const told = [
        await faultOf(talk.call("session.create", { name: "new" })),
        await faultOf(talk.call("session.update", { id, labels: { of: "it" } })),
        await faultOf(talk.call("snapshot.create", { session: id })),
        await faultOf(talk.call("session.hibernate", { id })),
        await faultOf(talk.call("memory.add", { text: "something" })),
      ]
      for (const fault of told) expect(fault).toMatchObject({ code: "unavailable", hint: expect.any(String) })
      expect(mishap.hits).toBeGreaterThan(0)
      // What only reads, and what has nothing to write, goes on.
      expect(await talk.call("session.get", { id })).toMatchObject({ state: "running" })
      expect(await talk.run(id, "echo on")).toMatchObject({ text: "on\n" })
      mishap.heal()
      expect(await talk.call("session.hibernate", { id })).toMatchObject({ state: "hibernated" })
      expect(await talk.run(id, "echo on")).toMatchObject({ text: "on\n" })
      const { id: after } = await talk.call("session.create", { name: "new" })
      for (const one of [id, after]) await talk.call("session.delete", { id: one })
      await runner.stop()
      await using again = await Runner.start(home)
      expect(await again.talk.sessions()).toEqual([])
      expect(await lastingLeaks(home)).toEqual([])
    },
  )
})

describe("a control plane whose database is overwritten at its beginning", () => {
  it("does not start, says why, and touches nothing", async () => {
    const home = mkdtempSync(join(tmpdir(), "wc-"))
    const file = join(home, "control/control.db")
    try {
      await (await ControlDoor.start(home, dist))[Symbol.asyncDispose]()
      const bytes = readFileSync(file)
      const spoiled = Buffer.from(bytes).fill("nonsense ", 0, 4_096)
      writeFileSync(file, spoiled)
      expect(await refusal(ControlDoor.start(home, dist))).toMatch(/Fault: .*database[^]*hint: '.*damaged/)
      expect(readFileSync(file).equals(spoiled)).toBe(true)
      writeFileSync(file, bytes)
      await (await ControlDoor.start(home, dist))[Symbol.asyncDispose]()
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  })
})
