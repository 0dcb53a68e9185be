import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import { describe, expect, it } from "vitest"
import { Execution } from "../init/exec.ts"
import { Operation } from "../init/operation.ts"
import { defaultLimits, type SandboxId } from "../sandbox-spec.ts"
import { specOf } from "../spec-of.ts"
import { never, sh, text, type World } from "./world.ts"

/** From its making to its end, each also at the wrong moment and twice. */
export function describeLife(world: World): void {
  describe("life", () => {
    it("creates, starts, runs, stops and destroys", async () => {
      const { driver } = world
      const id = await world.create()
      expect(await driver.exists(id)).toBe(true)
      const sandbox = await driver.start(id, never)
      const result = await sh(sandbox, "echo out; echo err >&2; exit 7")
      expect(result).toMatchObject({ code: 7, signal: null, reason: "exit", truncated: false })
      expect(result.stdout.toString()).toBe("out\n")
      expect(result.stderr.toString()).toBe("err\n")
      await driver.stop(id)
      await sandbox.ended
      expect(await driver.exists(id)).toBe(true)
      await driver.destroy(id)
      expect(await driver.exists(id)).toBe(false)
    })

    it("keeps what was written over a stop and a start", async () => {
      const { driver } = world
      const id = await world.create()
      await text(await driver.start(id, never), "echo kept > note; echo mine > ~/note", { cwd: "/workspace" })
      await driver.stop(id)
      const again = await driver.start(id, never)
      expect(await text(again, "cat note ~/note", { cwd: "/workspace" })).toBe("kept\nmine\n")
    })

    it("refuses what makes no sense, with a typed fault", async () => {
      const { driver, image } = world
      const id = await world.create()
      await expect(driver.create(specOf(image, { id }), never)).rejects.toMatchObject({ code: "conflict" })
      await driver.start(id, never)
      await expect(driver.start(id, never)).rejects.toMatchObject({ code: "conflict" })
      await expect(driver.start(newId("sbx"), never)).rejects.toMatchObject({ code: "not_found" })
      const noId = "../x" as SandboxId
      for (const asked of [driver.exists(noId), driver.start(noId, never), driver.stop(noId), driver.destroy(noId)])
        await expect(asked).rejects.toMatchObject({ code: "invalid" })
      await expect(
        world.create({ image: { layers: ["/no/such/layer"] } }).then((one) => driver.start(one, never)),
      ).rejects.toMatchObject({ code: "not_found" })
      for (const limits of [
        { memoryBytes: 0 },
        { memoryBytes: Number.NaN },
        { pidsMax: -1 },
        { cpus: 0 },
        { pidsMax: 1.5 },
      ]) {
        await expect(world.create({ limits: { ...defaultLimits, ...limits } })).rejects.toMatchObject({
          code: "invalid",
        })
      }
      await expect(world.create({ hostname: "no good\n" })).rejects.toMatchObject({ code: "invalid" })
      await expect(world.create({ image: { layers: ["/a/../etc"] } })).rejects.toMatchObject({ code: "invalid" })
    })

    it("destroys at any moment, and twice", async () => {
      const { driver } = world
      await driver.destroy(newId("sbx"))
      const created = await world.create()
      await driver.destroy(created)
      await driver.destroy(created)
      const starting = await world.create()
      const start = driver.start(starting, never).catch((thrown: unknown) => thrown)
      await driver.destroy(starting)
      await start
      expect(await driver.exists(starting)).toBe(false)
    })

    it("rejects with the caller's reason when aborted, and leaves a sandbox that can be started", async () => {
      const { driver, image } = world
      const reason = new Fault("cancelled", "changed my mind")
      await expect(driver.create(specOf(image), AbortSignal.abort(reason))).rejects.toBe(reason)
      const id = await world.create()
      const controller = new AbortController()
      const start = driver.start(id, controller.signal)
      setImmediate(() => controller.abort(reason))
      await expect(start).rejects.toBe(reason)
      await driver.start(id, never)
    })

    it("says when a sandbox has ended", async () => {
      const { driver } = world
      const sandbox = await world.start()
      await using operation = new Operation(await sandbox.connect(), { op: "stop", graceMs: 0 })
      await operation.event("ok")
      await sandbox.ended
      await expect(sh(sandbox, "true")).rejects.toMatchObject({ code: "unavailable" })
      await driver.stop(sandbox.id)
    })

    it("stops what does not want to stop", async () => {
      const { driver } = world
      const sandbox = await world.start()
      await using stubborn = await Execution.start(sandbox, {
        argv: ["sh", "-c", "trap '' TERM INT HUP; echo up; while :; do sleep 1; done"],
      })
      await stubborn.output().next()
      await driver.stop(sandbox.id, 50)
      await sandbox.ended
    })
  })
}
