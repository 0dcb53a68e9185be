import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createLog } from "@warren/base/log.ts"
import { describe, expect, it } from "vitest"
import { sh, text } from "./testing/fixture.ts"
import { fillUp, firstBytes, MiB, sizeOf, VolumeWorld } from "./testing/volume-world.ts"
import { VolumeFile } from "./volume-file.ts"

const isRoot = process.getuid?.() === 0

describe.runIf(isRoot)("the volume", () => {
  const world = new VolumeWorld()

  it("has its room on the disk from the beginning", async () => {
    await world.open()
    expect(statSync(world.file)).toMatchObject({ size: firstBytes })
    expect(statSync(world.file).blocks * 512).toBeGreaterThanOrEqual(firstBytes)
    expect(world.reason).toBeUndefined()
  })

  it("grows under those who write to it, and loses nothing", async () => {
    await world.open()
    const sandbox = await world.start()
    const writer = `const fs = require("fs"), crypto = require("crypto")
      const sums = []
      for (let n = 0; n < 24; n++) {
        const bytes = crypto.randomBytes(${25 * MiB})
        for (;;) {
          try { fs.writeFileSync("f" + n, bytes); fs.fsyncSync(fs.openSync("f" + n)); break }
          catch (failure) { if (failure.code !== "ENOSPC") throw failure }
        }
        sums.push(crypto.createHash("sha256").update(bytes).digest("hex") + "  f" + n)
      }
      fs.writeFileSync("sums", sums.join("\\n") + "\\n")`
    const { code, stderr } = await sh(sandbox, `node -e '${writer}' && sha256sum --quiet -c sums`, {
      cwd: "/workspace",
    })
    expect(stderr.toString()).toBe("")
    expect(code).toBe(0)
    expect(sizeOf(world.folder)).toBeGreaterThan(650 * MiB)
    expect(statSync(world.file).size).toBe(sizeOf(world.folder))
    expect(world.logged.filter((line) => line.includes("volume.grow")).length).toBeGreaterThan(0)
    // It is as large afterwards, and whole.
    await world.driver.stop(sandbox.id)
    await world.close()
    await world.open()
    expect(sizeOf(world.folder)).toBeGreaterThan(650 * MiB)
    const check = await sh(await world.restart(sandbox.id), "sha256sum --quiet -c sums && echo whole", {
      cwd: "/workspace",
    })
    expect(check.stdout.toString()).toBe("whole\n")
  })

  it("grows for a sandbox that finds it full", async () => {
    await world.open()
    fillUp(join(world.folder, "filler"))
    // No look of its own comes in between.
    const before = sizeOf(world.folder)
    const sandbox = await world.start()
    expect(sizeOf(world.folder)).toBeGreaterThan(before)
    expect(await text(sandbox, "head -c 20m /dev/zero > /workspace/x && echo fits")).toBe("fits\n")
    rmSync(join(world.folder, "filler"))
  })

  it("takes up what a runner that was killed had begun to give it", async () => {
    await world.open()
    const { id } = await world.start()
    await text(await world.restart(id), "echo kept > /workspace/note; sync")
    await world.driver.stop(id)
    await world.close()
    await world.detached()
    execFileSync("fallocate", ["--length", String(2 * firstBytes), world.file])
    await world.open()
    expect(sizeOf(world.folder)).toBe(2 * firstBytes)
    expect(await world.note(id)).toBe("kept\n")
  })

  it("that was only promised its room is given it, and no more than it needs", async () => {
    mkdirSync(world.folder, { recursive: true })
    execFileSync("truncate", ["--size", "3G", world.file])
    execFileSync("mkfs.btrfs", ["--quiet", "--metadata", "single", world.file])
    await world.open()
    expect(statSync(world.file).size).toBeLessThan(2 * 1024 ** 3)
    expect(statSync(world.file).blocks * 512).toBeGreaterThanOrEqual(statSync(world.file).size)
    expect(sizeOf(world.folder)).toBe(statSync(world.file).size)
    expect(await text(await world.start(), "echo alive")).toBe("alive\n")
  })

  it("gives room back that it does not need any more", async () => {
    mkdirSync(world.folder, { recursive: true })
    await using volume = new VolumeFile(world.file, world.folder, {
      log: createLog((line) => void world.logged.push(line)),
      firstBytes,
    })
    await volume.open()
    for (let n = 0; statSync(world.file).size < 2 * 1024 ** 3; n++) {
      writeFileSync(join(world.folder, `f${n}`), Buffer.alloc(50 * MiB, n))
      execFileSync("sync", ["-f", world.folder])
      await volume.growIfNeeded()
    }
    const largest = statSync(world.file).size
    for (const name of readdirSync(world.folder).slice(1)) rmSync(join(world.folder, name))
    const rest = readdirSync(world.folder)
    await expect
      .poll(
        async () => {
          execFileSync("btrfs", ["filesystem", "sync", world.folder])
          await volume.shrinkIfLoose()
          return statSync(world.file).size
        },
        { timeout: 30_000 },
      )
      .toBeLessThan(largest)
    for (const name of rest) {
      const n = Number(name.slice(1))
      expect(readFileSync(join(world.folder, name)).equals(Buffer.alloc(50 * MiB, n))).toBe(true)
    }
    expect(sizeOf(world.folder)).toBe(statSync(world.file).size)
  })
})
