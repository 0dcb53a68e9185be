import { describe, expect, it } from "vitest"
import { canPause } from "../driver.ts"
import { Execution } from "../init/exec.ts"
import { sh, text, type World } from "./world.ts"

/** What is counted, also while nothing may move. */
export function describeNumbers(world: World): void {
  describe("numbers", () => {
    it("are there and plausible", async () => {
      const sandbox = await world.start()
      await sh(
        sandbox,
        "head -c 5m /dev/zero > five; sync -f five; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done",
        {
          cwd: "/workspace",
        },
      )
      const stats = await sandbox.stats()
      expect(stats.diskBytes).toBeGreaterThan(5_000_000)
      // Without cgroups the time of a process that ended is its parent's once that has reaped it, a moment later.
      await expect.poll(async () => (await sandbox.stats()).cpuUs).toBeGreaterThan(1_000)
      expect(stats.pids).toBeGreaterThanOrEqual(1)
      expect(stats.memoryBytes).toBeGreaterThan(0)
    })

    it("stand still while it is paused", async ({ skip }) => {
      const { driver } = world
      const sandbox = await world.start()
      if (!canPause(driver, sandbox)) return skip(driver.abilities.reasons["pause"])
      await using counter = await Execution.start(sandbox, {
        argv: ["sh", "-c", "while :; do echo x; done"],
        outputBytesMax: 0,
      })
      await counter.output().next()
      await sandbox.pause()
      const before = (await sandbox.stats()).cpuUs
      await new Promise((resolve) => setTimeout(resolve, 100))
      expect((await sandbox.stats()).cpuUs).toBe(before)
      await sandbox.resume()
      expect(await text(sandbox, "echo alive")).toBe("alive\n")
    })

    it("are paused although they fork all the time", async ({ skip }) => {
      const { driver } = world
      const sandbox = await world.start()
      if (!canPause(driver, sandbox)) return skip(driver.abilities.reasons["pause"])
      await using forks = await Execution.start(sandbox, {
        argv: ["sh", "-c", "for n in 1 2 3 4; do while :; do /bin/true; done & done; echo begun; wait"],
      })
      await forks.output().next()
      for (let round = 0; round < 10; round++) {
        await sandbox.pause()
        await sandbox.resume()
      }
      await sandbox.pause()
      const before = (await sandbox.stats()).cpuUs
      expect((await sandbox.stats()).cpuUs).toBe(before)
      await sandbox.resume()
      expect(await text(sandbox, "echo alive")).toBe("alive\n")
    })
  })
}
