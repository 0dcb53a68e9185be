import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { newId } from "@warren/base/id.ts"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { defaultLimits } from "../sandbox-spec.ts"
import { sh, text } from "./testing/fixture.ts"
import { fillUp, firstBytes, MiB, VolumeWorld } from "./testing/volume-world.ts"

const isRoot = process.getuid?.() === 0

describe.runIf(isRoot)("the volume", () => {
  const world = new VolumeWorld()

  describe("on a full disk", () => {
    let disk: string

    beforeEach(() => {
      disk = join(world.path, `${newId("sbx")}.disk`)
      world.root = `${disk}.mount`
      mkdirSync(world.root)
      execFileSync("truncate", ["--size", "700M", disk])
      execFileSync("mkfs.ext4", ["-q", "-F", disk])
      execFileSync("mount", ["-o", "loop", disk, world.root])
    })
    afterEach(async () => {
      await world.close(true)
      await world.detached()
      execFileSync("umount", [world.root])
      rmSync(disk)
    })

    it("stops those who write, harms nobody, and grows when there is room again", async () => {
      await world.open()
      const one = await world.start()
      const other = await world.start()
      await text(one, "echo kept > /workspace/note; sync")
      await text(other, "echo other > /workspace/other; sync")
      fillUp(join(world.root, "filler"))
      const { stderr } = await sh(one, "head -c 600m /dev/urandom > /workspace/big; sync")
      expect(stderr.toString()).toMatch(/No space left on device/)
      await expect(world.start()).rejects.toMatchObject({ code: "limit" })
      await expect(world.driver.snapshot(one.id, newId("snp"))).rejects.toMatchObject({ code: "limit" })
      expect(await text(other, "cat /workspace/other; echo alive")).toBe("other\nalive\n")
      // There is a way out of it for whoever has caused it.
      await text(one, "rm /workspace/big")
      const write = "cat /workspace/note; echo more > /workspace/more && sync && cat /workspace/more"
      await expect.poll(() => text(one, write), { timeout: 20_000 }).toBe("kept\nmore\n")
      expect(await text(one, "head -c 600m /dev/urandom > /workspace/big; sync; echo done")).toBe("done\n")
      rmSync(join(world.root, "filler"))
      await expect
        .poll(() => world.start().then((sandbox) => text(sandbox, "echo alive")), { timeout: 20_000 })
        .toBe("alive\n")
      expect(statSync(world.file).size).toBeGreaterThan(firstBytes)
    })

    it("is not made, and that is said", async () => {
      fillUp(join(world.root, "filler"))
      rmSync(join(world.root, "filler"))
      writeFileSync(join(world.root, "filler"), Buffer.alloc(420 * MiB, 1))
      await world.open()
      expect(world.driver.abilities).toMatchObject({
        diskLimit: false,
        reasons: { diskLimit: "there is too little room on the disk" },
      })
      const sandbox = await world.start({ limits: { ...defaultLimits, diskBytes: 0 } })
      expect(await text(sandbox, "echo alive")).toBe("alive\n")
      await world.driver.destroy(sandbox.id)
    })
  })

  describe("on a disk that is a btrfs itself", () => {
    let disk: string

    beforeEach(() => {
      disk = join(world.path, `${newId("sbx")}.disk`)
      world.root = `${disk}.mount`
      mkdirSync(world.root)
      execFileSync("truncate", ["--size", "1G", disk])
      execFileSync("mkfs.btrfs", ["--quiet", disk])
      execFileSync("mount", ["-o", "loop", disk, world.root])
    })
    afterEach(async () => {
      await world.close(true)
      await expect.poll(() => tryUnmount(world.root), { timeout: 30_000 }).toBe(true)
      rmSync(disk)
    })

    /** How much more of the disk is used after a sandbox with 200 MB was forked twice. */
    async function forkTwice(diskBytes: number): Promise<number> {
      const limits = { ...defaultLimits, diskBytes }
      const parent = await world.start({ limits })
      await text(
        parent,
        "head -c 200m /dev/urandom > /workspace/data; sha256sum /workspace/data > /workspace/sum; sync",
      )
      const before = statfsSync(world.root).bfree
      const from = newId("snp")
      await world.driver.snapshot(parent.id, from)
      const children = [await world.start({ limits, from }), await world.start({ limits, from })]
      for (const child of children) {
        expect(await text(child, "sha256sum -c /workspace/sum; sync")).toBe("/workspace/data: OK\n")
      }
      await world.driver.removeSnapshot(from)
      return (before - statfsSync(world.root).bfree) * statfsSync(world.root).bsize
    }

    it("is the disk, and forks cost nothing", async () => {
      await world.open()
      expect(readdirSync(world.root)).not.toContain("volume.btrfs")
      expect(world.driver.abilities).toMatchObject({ diskLimit: true, snapshot: true })
      expect(world.driver.abilities.reasons["snapshotCost"]).toBeUndefined()
      expect(await forkTwice(1024 ** 3)).toBeLessThan(50 * MiB)
    })

    it("can be plain folders, and forks share their bytes", async () => {
      await world.open({ isPlain: true })
      expect(world.driver.abilities.reasons["snapshotCost"]).toMatch(/^every file is cloned: .*paused meanwhile$/)
      expect(await forkTwice(0)).toBeLessThan(50 * MiB)
    })
  })

  it("does not hide sandboxes that were made without one", async () => {
    await world.open({ isPlain: true })
    const sandbox = await world.start({ limits: { ...defaultLimits, diskBytes: 0 } })
    await text(sandbox, "echo kept > /workspace/note")
    await world.driver.stop(sandbox.id)
    await world.close()
    await world.open()
    expect(world.driver.abilities.reasons["diskLimit"]).toMatch(/made without a volume/)
    expect(await world.note(sandbox.id)).toBe("kept\n")
  })
})

/** What a sandbox had mounted goes a moment after it. */
function tryUnmount(folder: string): boolean {
  try {
    execFileSync("umount", [folder], { stdio: "pipe" })
    return true
  } catch {
    return false
  }
}
