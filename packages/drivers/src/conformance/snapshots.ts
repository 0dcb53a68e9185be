import { newId } from "@warren/base/id.ts"
import { afterAll, describe, expect, it } from "vitest"
import { canPause, canSnapshot, type Driver, type Sandbox, type Snapshotting } from "../driver.ts"
import { Execution } from "../init/exec.ts"
import type { SnapshotId } from "../sandbox-spec.ts"
import { commandLines, longSleep, never, sh, text, type World } from "./world.ts"

/** What other sandboxes begin with. */
export function describeSnapshots(world: World): void {
  describe("snapshots", () => {
    const taken: SnapshotId[] = []
    afterAll(async () => {
      const { driver } = world
      for (const id of taken) if (canSnapshot(driver)) await driver.removeSnapshot(id)
    })

    /** Of a running sandbox, or of a stopped one where it must be: then it is started again. */
    async function snapshotOf(able: Driver & Snapshotting, sandbox: Sandbox): Promise<SnapshotId> {
      const id = newId("snp")
      taken.push(id)
      if (able.abilities.reasons["snapshotCost"] === undefined || canPause(able, sandbox)) {
        await able.snapshot(sandbox.id, id)
        return id
      }
      await expect(able.snapshot(sandbox.id, id)).rejects.toMatchObject({ code: "conflict" })
      await able.stop(sandbox.id)
      await able.snapshot(sandbox.id, id)
      await able.start(sandbox.id, never)
      return id
    }

    it("are there, or it is said why not", async () => {
      const { driver } = world
      expect(canSnapshot(driver)).toBe(driver.abilities.reasons["snapshot"] === undefined)
      if (canSnapshot(driver)) return
      await expect(world.create({ from: newId("snp") })).rejects.toMatchObject({ code: "unsupported" })
    })

    it("are what others begin with, each with its own", async ({ skip }) => {
      const { driver } = world
      if (!canSnapshot(driver)) return skip(driver.abilities.reasons["snapshot"])
      const parent = await world.start()
      await sh(parent, "mkdir a; echo one > a/b; chmod 640 a/b; ln a/b hard; ln -s a/b soft; truncate -s 3M sparse", {
        cwd: "/workspace",
      })
      const from = await snapshotOf(driver, parent)
      const children = await Promise.all([1, 2, 3].map(() => world.start({ from })))
      const look = "cat hard soft; stat -c '%a %h %u' a/b; stat -c '%s' sparse; du -k sparse"
      for (const child of children) {
        expect(await text(child, look, { cwd: "/workspace" })).toBe("one\none\n640 2 1000\n3145728\n0\tsparse\n")
      }
      await Promise.all(children.map((child, n) => sh(child, `echo child${n} > a/b; rm soft`, { cwd: "/workspace" })))
      expect(await text(children[1] ?? parent, "cat hard", { cwd: "/workspace" })).toBe("child1\n")
      const again = await world.start({ from })
      expect(await text(again, "cat soft", { cwd: "/workspace" })).toBe("one\n")
    })

    it("leave the sandbox as it was, running or paused", async ({ skip }) => {
      const { driver } = world
      if (!canSnapshot(driver)) return skip(driver.abilities.reasons["snapshot"])
      const sandbox = await world.start()
      if (!canPause(driver, sandbox)) return skip(driver.abilities.reasons["pause"])
      const sleeping = longSleep()
      await using counter = await Execution.start(sandbox, {
        argv: ["sh", "-c", `${sleeping} & while :; do echo x; done`],
        outputBytesMax: 0,
      })
      await counter.output().next()
      await snapshotOf(driver, sandbox)
      expect(await text(sandbox, commandLines)).toContain(sleeping)
      await sandbox.pause()
      await snapshotOf(driver, sandbox)
      const before = (await sandbox.stats()).cpuUs
      expect((await sandbox.stats()).cpuUs).toBe(before)
      await sandbox.resume()
      expect(await text(sandbox, "echo alive")).toBe("alive\n")
    })

    it("are taken of what is stopped, and taken away at any time", async ({ skip }) => {
      const { driver } = world
      if (!canSnapshot(driver)) return skip(driver.abilities.reasons["snapshot"])
      const id = await world.create()
      await text(await driver.start(id, never), "echo kept > note", { cwd: "/workspace" })
      await driver.stop(id)
      const from = newId("snp")
      await driver.snapshot(id, from)
      expect(await driver.listSnapshots()).toContain(from)
      await driver.destroy(id)
      const child = await world.create({ from })
      await driver.removeSnapshot(from)
      await driver.removeSnapshot(from)
      expect(await driver.listSnapshots()).not.toContain(from)
      await expect(world.create({ from })).rejects.toMatchObject({ code: "not_found" })
      expect(await text(await driver.start(child, never), "cat note", { cwd: "/workspace" })).toBe("kept\n")
    })
  })
}
