import type { Duplex } from "node:stream"
import type { Fault } from "@warren/base/fault.ts"
import { describe, expect, it } from "vitest"
import { lackOf } from "../driver.ts"
import { defaultLimits } from "../sandbox-spec.ts"
import { specOf } from "../spec-of.ts"
import { never, sh, text, type World } from "./world.ts"

/** What is more than was granted. */
export function describeLimits(world: World): void {
  describe("limits", () => {
    it("are refused where they cannot be kept", async ({ skip }) => {
      const { driver, image } = world
      if (driver.abilities.diskLimit) return skip("the disk can be limited here")
      const spec = specOf(image, { limits: { ...defaultLimits, diskBytes: 1_000_000 } })
      await expect(driver.create(spec, never)).rejects.toMatchObject({ code: "unsupported" })
      expect(await driver.exists(spec.id)).toBe(false)
    })

    it("kill what takes too much memory, and say so", async ({ skip }) => {
      const { driver } = world
      const lack = lackOf(driver, "limits")
      if (lack !== undefined) return skip(lack)
      const sandbox = await world.start({ limits: { ...defaultLimits, memoryBytes: 64 * 1024 * 1024 } })
      const bomb = await sh(sandbox, "head -c 200m /dev/zero | tail | wc -c; exec tail /dev/zero")
      expect(bomb.reason).toBe("oom")
      expect((await sandbox.stats()).oomKills).toBeGreaterThan(0)
      expect(await text(sandbox, "echo alive")).toBe("alive\n")
    })

    it("on what goes on at once tell those who are too many, and bear the rest", async () => {
      const sandbox = await world.start()
      const held: Duplex[] = []
      const hold = async (): Promise<never> => {
        for (;;) {
          held.push(await sandbox.connect())
          // Answered after those before it have been let in: only so many may wait for that.
          if (held.length % 32 === 0) await text(sandbox, "true")
        }
      }
      await expect(hold()).rejects.toMatchObject({ code: "limit" })
      expect(held.length).toBeGreaterThan(100)
      const asked = await Promise.allSettled(Array.from({ length: 50 }, () => text(sandbox, "true")))
      const told = asked.map((one) => (one.status === "rejected" ? (one.reason as Fault).code : "done"))
      expect(new Set(told)).toEqual(new Set(["limit"]))
      for (const connection of held) connection.destroy()
      await expect.poll(() => text(sandbox, "echo alive").catch((thrown: Fault) => thrown.code)).toBe("alive\n")
    })

    it("hold a fork bomb", async () => {
      const { driver } = world
      const sandbox = await world.start({ limits: { ...defaultLimits, pidsMax: 64 } })
      await sh(sandbox, "bomb() { bomb | bomb & }; bomb; sleep 1", { timeoutMs: 2_000 })
      if (lackOf(driver, "limits") === undefined) expect((await sandbox.stats()).pidsRefused).toBeGreaterThan(0)
      await expect.poll(() => text(sandbox, "echo alive").catch((thrown: Fault) => thrown.code)).toBe("alive\n")
    })
  })
}
