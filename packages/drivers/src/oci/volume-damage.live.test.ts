import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import {
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs"
import { join } from "node:path"
import { newId } from "@warren/base/id.ts"
import { describe, expect, it } from "vitest"
import { Files, readAll } from "../init/files.ts"
import { never, text } from "./testing/fixture.ts"
import { firstBytes, MiB, VolumeWorld } from "./testing/volume-world.ts"

const isRoot = process.getuid?.() === 0

describe.runIf(isRoot)("the volume that was damaged", () => {
  const world = new VolumeWorld()

  it("by a kill in the middle of everything is as it was", async () => {
    await world.open()
    const sandbox = await world.start()
    execFileSync("btrfs", ["filesystem", "sync", world.folder])
    await text(sandbox, "echo kept > /workspace/note; sync /workspace/note; echo lost > /workspace/late")
    await world.close()
    // As after a power cut: the file as it is on the disk while the file system is in use.
    const crashed = join(world.root, "crashed")
    cpSync(world.file, crashed)
    await world.open()
    for await (const _ of world.driver.adopt(never)) void _
    await world.close(true)
    await world.detached()
    execFileSync("mv", [crashed, world.file])
    await world.open()
    expect(world.reason).toBeUndefined()
    expect(await world.note(sandbox.id)).toBe("kept\n")
  })

  it("by being cut short is made as long as it was", async () => {
    await world.open()
    const id = await world.left()
    truncateSync(world.file, firstBytes - 60 * MiB)
    await world.open()
    expect(world.reason).toMatch(/repaired: its file had become shorter/)
    expect(statSync(world.file).size).toBe(firstBytes)
    expect(await world.note(id)).toBe("kept\n")
    expect(world.broken).toEqual([])
  })

  it("in the bytes of a snapshot is told to who reads them, and other bytes are never passed on", async () => {
    await world.open()
    const origin = await world.start()
    const [piece, from] = [randomBytes(4096), newId("snp")]
    await new Files(origin).write("/tmp/piece", piece)
    const many = "for n in $(seq 1000); do cat /tmp/piece; done > /workspace/data"
    await text(origin, `${many}; echo kept > /workspace/note; sync`)
    await world.driver.stop(origin.id)
    await world.driver.snapshot(origin.id, from)
    await world.driver.destroy(origin.id)
    await world.close()
    await world.detached()
    expect(flipSome(world.file, piece)).toBeGreaterThan(100)
    await world.open()
    const clone = await world.start({ from })
    // Whatever can still be read is what was written.
    const look =
      "cat /workspace/note; dd if=/workspace/data of=/tmp/read bs=4096 conv=noerror 2>/tmp/why; grep -c 'Input/output error' /tmp/why"
    expect(await text(clone, look)).toMatch(/^kept\n[1-9]\d*\n$/)
    const read = await readAll(new Files(clone).read("/tmp/read"), 4096 * 1000)
    for (let at = 0; at < read.length; at += 4096) expect(read.subarray(at, at + 4096).equals(piece)).toBe(true)
    await world.driver.destroy(clone.id)
    await world.driver.removeSnapshot(from)
  })

  it("in its superblock is restored from a copy", async () => {
    await world.open()
    const id = await world.left()
    zero(world.file, 65_536, 4096)
    await world.open()
    expect(world.reason).toMatch(/repaired: its superblock was restored/)
    expect(await world.note(id)).toBe("kept\n")
    expect((await world.driver.probe()).filter(({ name }) => name === "volume")).toMatchObject([{ isMet: false }])
    await world.driver.stop(id)
    await world.close()
    await world.open()
    expect(world.reason).toBeUndefined()
    expect(await world.note(id)).toBe("kept\n")
  })

  it("in the log of its last seconds goes on without them", async () => {
    await world.open()
    const sandbox = await world.start()
    await text(sandbox, "echo kept > /workspace/note; sync")
    await world.driver.stop(sandbox.id)
    execFileSync("btrfs", ["filesystem", "sync", world.folder])
    const again = await world.restart(sandbox.id)
    // What is synced by itself is in the log until the next commit.
    const crashed = join(world.root, "crashed")
    await expect
      .poll(async () => {
        await text(again, "echo late > /workspace/late; sync /workspace/late")
        cpSync(world.file, crashed)
        return logRootOf(crashed)
      })
      .toBeGreaterThan(0)
    await world.driver.destroy(sandbox.id)
    await world.close()
    await world.detached()
    zero(crashed, placeOf(crashed, logRootOf(crashed)), 16_384)
    execFileSync("mv", [crashed, world.file])
    await world.open()
    expect(world.reason).toMatch(/repaired: what was written in its last seconds/)
    for await (const _ of world.driver.adopt(never)) void _
    expect(await world.note(sandbox.id)).toBe("kept\n")
  })

  it("beyond repair is set aside, and said so until somebody removes it", async () => {
    await world.open()
    await world.left()
    const before = readFileSync(world.file)
    before.fill(0xa5, 0, 200 * MiB)
    writeFileSync(world.file, before)
    await world.open()
    expect(world.reason).toMatch(/beyond repair.*set aside, with what was in it: .*volume\.btrfs\.broken-20/)
    expect(world.broken).toHaveLength(1)
    expect(readFileSync(join(world.root, world.broken[0] ?? "")).equals(before)).toBe(true)
    expect(world.sandboxes).toEqual([])
    expect(await text(await world.start(), "echo alive")).toBe("alive\n")
    expect(world.logged.filter((line) => line.includes("volume.note")).length).toBeGreaterThan(0)
    await world.close(true)
    await world.open()
    expect(world.reason).toMatch(/^a damaged volume was set aside/)
    await world.close()
    rmSync(join(world.root, world.broken[0] ?? ""))
    await world.open()
    expect(world.reason).toBeUndefined()
    expect(readdirSync(world.root).filter((name) => !name.startsWith("lock"))).toEqual(["volume", "volume.btrfs"])
  })

  it("is not touched when it is this machine that cannot mount it", async () => {
    await world.open()
    const id = await world.left()
    const path = process.env["PATH"]
    const tools = join(world.root, "tools")
    mkdirSync(tools)
    writeFileSync(join(tools, "mount"), "#!/bin/sh\necho 'mount: failed to setup loop device' >&2; exit 32\n", {
      mode: 0o755,
    })
    process.env["PATH"] = `${tools}:${path}`
    try {
      await expect(world.open()).rejects.toMatchObject({
        code: "unavailable",
        message: expect.stringMatching(/cannot be mounted/) as string,
      })
    } finally {
      process.env["PATH"] = path
    }
    expect(world.broken).toEqual([])
    await world.open()
    expect(world.reason).toBeUndefined()
    expect(await world.note(id)).toBe("kept\n")
  })
})

/** One bit in every third block that is just this; how many. */
function flipSome(path: string, block: Buffer): number {
  const bytes = readFileSync(path)
  let found = 0
  for (let at = 0; at < bytes.length; at += block.length)
    if (bytes.compare(block, 0, block.length, at, at + block.length) === 0 && found++ % 3 === 0)
      bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
  writeFileSync(path, bytes)
  return Math.ceil(found / 3)
}

function zero(path: string, at: number, bytes: number): void {
  const fd = openSync(path, "r+")
  writeSync(fd, Buffer.alloc(bytes), 0, bytes, at)
  closeSync(fd)
}

/** Where a btrfs keeps the root of its log; 0 when there is nothing in it. */
function logRootOf(path: string): number {
  const said = execFileSync("btrfs", ["inspect-internal", "dump-super", path]).toString()
  return Number(/^log_root\s+(\d+)/m.exec(said)?.[1] ?? 0)
}

/** Where in the file the block is that says it is the one at `address`. */
function placeOf(path: string, address: number): number {
  const bytes = readFileSync(path)
  for (let at = 0; at < bytes.length; at += 4096) {
    const isBlock = bytes.compare(bytes, 65_536 + 32, 65_536 + 48, at + 32, at + 48) === 0
    if (at !== 65_536 && isBlock && Number(bytes.readBigUInt64LE(at + 48)) === address) return at
  }
  throw new Error("there is no such block")
}
