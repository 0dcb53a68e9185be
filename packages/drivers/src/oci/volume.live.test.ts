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
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs"
import { join } from "node:path"
import { newId } from "@warren/base/id.ts"
import { createLog } from "@warren/base/log.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Sandbox } from "../driver.ts"
import { Files, readAll } from "../init/files.ts"
import { defaultLimits, type Image, type SandboxId, type SandboxSpec } from "../sandbox-spec.ts"
import { specOf } from "../spec-of.ts"
import { openOciDriver, type OciDriver } from "./driver.ts"
import { hostImage } from "./host-image.ts"
import { never, sh, text } from "./testing/fixture.ts"
import { programs } from "./testing/subject.ts"
import { VolumeFile } from "./volume-file.ts"

const MiB = 1024 * 1024
const firstBytes = 256 * MiB
const isRoot = process.getuid?.() === 0

describe.runIf(isRoot)("the volume", () => {
  let temp: TempFolder
  let image: Image
  let root: string
  let driver: OciDriver | undefined
  let logged: string[]

  beforeAll(async () => {
    temp = await TempFolder.make()
    image = await hostImage(join(temp.path, "image"))
  })
  afterAll(() => temp[Symbol.asyncDispose]())
  beforeEach(() => {
    root = join(temp.path, newId("sbx"))
    logged = []
  })
  afterEach(async () => {
    if (driver) await close(true)
    await detached()
    rmSync(root, { recursive: true, force: true })
  })

  /** The kernel writes back what is left, and then lets go of the file. */
  async function detached(): Promise<void> {
    await expect.poll(() => loopsOf(root), { timeout: 30_000 }).toEqual([])
  }
  const file = (): string => join(root, "volume.btrfs")
  const folder = (): string => join(root, "volume")
  const sizeOf = (path: string): number => statfsSync(path).blocks * statfsSync(path).bsize

  async function open(): Promise<OciDriver> {
    const log = createLog((line) => void logged.push(line))
    driver = await openOciDriver({ root, programs, log, volume: { firstBytes } })
    return driver
  }

  async function close(isFinal = false): Promise<void> {
    if (isFinal) for (const id of sandboxes()) await driver?.destroy(id)
    await driver?.[Symbol.asyncDispose]()
    driver = undefined
  }

  const sandboxes = (): SandboxId[] =>
    readdirSync(folder()).filter((name): name is SandboxId => name.startsWith("sbx_"))

  async function start(changes: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    if (!driver) throw new Error("the driver is not open")
    const spec = specOf(image, { limits: { ...defaultLimits, diskBytes: 2 * 1024 ** 3 }, ...changes })
    await driver.create(spec, never)
    return driver.start(spec.id, never)
  }

  /** A stopped sandbox with a note, the driver closed and the file in nobody's hands. */
  async function left(): Promise<SandboxId> {
    const { id } = await start()
    await text(await restart(id), "echo kept > /workspace/note; head -c 30m /dev/urandom > /workspace/data; sync")
    await driver?.stop(id)
    await close()
    await detached()
    return id
  }

  async function restart(id: SandboxId): Promise<Sandbox> {
    await driver?.stop(id)
    return (await driver?.start(id, never)) as Sandbox
  }

  const note = async (id: SandboxId): Promise<string> => text(await restart(id), "cat /workspace/note")
  const reason = (): string | undefined => driver?.abilities.reasons["volume"]
  const broken = (): string[] => readdirSync(root).filter((name) => name.includes(".broken-"))

  it("has its room on the disk from the beginning", async () => {
    await open()
    expect(statSync(file())).toMatchObject({ size: firstBytes })
    expect(statSync(file()).blocks * 512).toBeGreaterThanOrEqual(firstBytes)
    expect(reason()).toBeUndefined()
  })

  it("grows under those who write to it, and loses nothing", async () => {
    await open()
    const sandbox = await start()
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
    expect(sizeOf(folder())).toBeGreaterThan(650 * MiB)
    expect(statSync(file()).size).toBe(sizeOf(folder()))
    expect(logged.filter((line) => line.includes("volume.grow")).length).toBeGreaterThan(0)
    // It is as large afterwards, and whole.
    await driver?.stop(sandbox.id)
    await close()
    await open()
    expect(sizeOf(folder())).toBeGreaterThan(650 * MiB)
    const check = await sh(await restart(sandbox.id), "sha256sum --quiet -c sums && echo whole", { cwd: "/workspace" })
    expect(check.stdout.toString()).toBe("whole\n")
  })

  it("grows for a sandbox that finds it full", async () => {
    await open()
    fillUp(join(folder(), "filler"))
    // No look of its own comes in between.
    const before = sizeOf(folder())
    const sandbox = await start()
    expect(sizeOf(folder())).toBeGreaterThan(before)
    expect(await text(sandbox, "head -c 20m /dev/zero > /workspace/x && echo fits")).toBe("fits\n")
    rmSync(join(folder(), "filler"))
  })

  it("takes up what a runner that was killed had begun to give it", async () => {
    await open()
    const { id } = await start()
    await text(await restart(id), "echo kept > /workspace/note; sync")
    await driver?.stop(id)
    await close()
    await detached()
    execFileSync("fallocate", ["--length", String(2 * firstBytes), file()])
    await open()
    expect(sizeOf(folder())).toBe(2 * firstBytes)
    expect(await note(id)).toBe("kept\n")
  })

  it("that was only promised its room is given it, and no more than it needs", async () => {
    mkdirSync(folder(), { recursive: true })
    execFileSync("truncate", ["--size", "3G", file()])
    execFileSync("mkfs.btrfs", ["--quiet", "--metadata", "single", file()])
    await open()
    expect(statSync(file()).size).toBeLessThan(2 * 1024 ** 3)
    expect(statSync(file()).blocks * 512).toBeGreaterThanOrEqual(statSync(file()).size)
    expect(sizeOf(folder())).toBe(statSync(file()).size)
    expect(await text(await start(), "echo alive")).toBe("alive\n")
  })

  it("gives room back that it does not need any more", async () => {
    mkdirSync(folder(), { recursive: true })
    await using volume = new VolumeFile(file(), folder(), {
      log: createLog((line) => void logged.push(line)),
      firstBytes,
    })
    await volume.open()
    for (let n = 0; statSync(file()).size < 2 * 1024 ** 3; n++) {
      writeFileSync(join(folder(), `f${n}`), Buffer.alloc(50 * MiB, n))
      execFileSync("sync", ["-f", folder()])
      await volume.growIfNeeded()
    }
    const largest = statSync(file()).size
    for (const name of readdirSync(folder()).slice(1)) rmSync(join(folder(), name))
    const rest = readdirSync(folder())
    await expect
      .poll(
        async () => {
          execFileSync("btrfs", ["filesystem", "sync", folder()])
          await volume.shrinkIfLoose()
          return statSync(file()).size
        },
        { timeout: 30_000 },
      )
      .toBeLessThan(largest)
    for (const name of rest) {
      const n = Number(name.slice(1))
      expect(readFileSync(join(folder(), name)).equals(Buffer.alloc(50 * MiB, n))).toBe(true)
    }
    expect(sizeOf(folder())).toBe(statSync(file()).size)
  })

  describe("on a full disk", () => {
    let disk: string

    beforeEach(() => {
      disk = join(temp.path, `${newId("sbx")}.disk`)
      root = `${disk}.mount`
      mkdirSync(root)
      execFileSync("truncate", ["--size", "700M", disk])
      execFileSync("mkfs.ext4", ["-q", "-F", disk])
      execFileSync("mount", ["-o", "loop", disk, root])
    })
    afterEach(async () => {
      await close(true)
      await detached()
      execFileSync("umount", [root])
      rmSync(disk)
    })

    it("stops those who write, harms nobody, and grows when there is room again", async () => {
      await open()
      const one = await start()
      const other = await start()
      await text(one, "echo kept > /workspace/note; sync")
      await text(other, "echo other > /workspace/other; sync")
      fillUp(join(root, "filler"))
      const { stderr } = await sh(one, "head -c 600m /dev/urandom > /workspace/big; sync")
      expect(stderr.toString()).toMatch(/No space left on device/)
      await expect(start()).rejects.toMatchObject({ code: "limit" })
      await expect(driver?.snapshot(one.id, newId("snp"))).rejects.toMatchObject({ code: "limit" })
      expect(await text(other, "cat /workspace/other; echo alive")).toBe("other\nalive\n")
      // There is a way out of it for whoever has caused it.
      await text(one, "rm /workspace/big")
      const write = "cat /workspace/note; echo more > /workspace/more && sync && cat /workspace/more"
      await expect.poll(() => text(one, write), { timeout: 20_000 }).toBe("kept\nmore\n")
      expect(await text(one, "head -c 600m /dev/urandom > /workspace/big; sync; echo done")).toBe("done\n")
      rmSync(join(root, "filler"))
      await expect
        .poll(() => start().then((sandbox) => text(sandbox, "echo alive")), { timeout: 20_000 })
        .toBe("alive\n")
      expect(statSync(file()).size).toBeGreaterThan(firstBytes)
    })

    it("is not made, and that is said", async () => {
      fillUp(join(root, "filler"))
      rmSync(join(root, "filler"))
      writeFileSync(join(root, "filler"), Buffer.alloc(420 * MiB, 1))
      await open()
      expect(driver?.abilities).toMatchObject({
        diskLimit: false,
        reasons: { diskLimit: "there is too little room on the disk" },
      })
      const sandbox = await start({ limits: { ...defaultLimits, diskBytes: 0 } })
      expect(await text(sandbox, "echo alive")).toBe("alive\n")
      await driver?.destroy(sandbox.id)
    })
  })

  describe("on a disk that is a btrfs itself", () => {
    let disk: string

    beforeEach(() => {
      disk = join(temp.path, `${newId("sbx")}.disk`)
      root = `${disk}.mount`
      mkdirSync(root)
      execFileSync("truncate", ["--size", "1G", disk])
      execFileSync("mkfs.btrfs", ["--quiet", disk])
      execFileSync("mount", ["-o", "loop", disk, root])
    })
    afterEach(async () => {
      await close(true)
      await expect.poll(() => tryUnmount(root), { timeout: 30_000 }).toBe(true)
      rmSync(disk)
    })

    /** How much more of the disk is used after a sandbox with 200 MB was forked twice. */
    async function forkTwice(diskBytes: number): Promise<number> {
      const limits = { ...defaultLimits, diskBytes }
      const parent = await start({ limits })
      await text(
        parent,
        "head -c 200m /dev/urandom > /workspace/data; sha256sum /workspace/data > /workspace/sum; sync",
      )
      const before = statfsSync(root).bfree
      const from = newId("snp")
      await driver?.snapshot(parent.id, from)
      const children = [await start({ limits, from }), await start({ limits, from })]
      for (const child of children) {
        expect(await text(child, "sha256sum -c /workspace/sum; sync")).toBe("/workspace/data: OK\n")
      }
      await driver?.removeSnapshot(from)
      return (before - statfsSync(root).bfree) * statfsSync(root).bsize
    }

    it("is the disk, and forks cost nothing", async () => {
      await open()
      expect(readdirSync(root)).not.toContain("volume.btrfs")
      expect(driver?.abilities).toMatchObject({ diskLimit: true, snapshot: true })
      expect(driver?.abilities.reasons["snapshotCost"]).toBeUndefined()
      expect(await forkTwice(1024 ** 3)).toBeLessThan(50 * MiB)
    })

    it("can be plain folders, and forks share their bytes", async () => {
      driver = await openOciDriver({ root, programs, log: createLog(() => undefined), volume: { isPlain: true } })
      expect(driver.abilities.reasons["snapshotCost"]).toMatch(/^every file is cloned: .*paused meanwhile$/)
      expect(await forkTwice(0)).toBeLessThan(50 * MiB)
    })
  })

  describe("that was damaged", () => {
    it("by a kill in the middle of everything is as it was", async () => {
      await open()
      const sandbox = await start()
      execFileSync("btrfs", ["filesystem", "sync", folder()])
      await text(sandbox, "echo kept > /workspace/note; sync /workspace/note; echo lost > /workspace/late")
      await close()
      // As after a power cut: the file as it is on the disk while the file system is in use.
      const crashed = join(root, "crashed")
      cpSync(file(), crashed)
      await open()
      for await (const _ of driver?.adopt(never) ?? []) void _
      await close(true)
      await detached()
      execFileSync("mv", [crashed, file()])
      await open()
      expect(reason()).toBeUndefined()
      expect(await note(sandbox.id)).toBe("kept\n")
    })

    it("by being cut short is made as long as it was", async () => {
      await open()
      const id = await left()
      truncateSync(file(), firstBytes - 60 * MiB)
      await open()
      expect(reason()).toMatch(/repaired: its file had become shorter/)
      expect(statSync(file()).size).toBe(firstBytes)
      expect(await note(id)).toBe("kept\n")
      expect(broken()).toEqual([])
    })

    it("in the bytes of a snapshot is told to who reads them, and other bytes are never passed on", async () => {
      await open()
      const origin = await start()
      const [piece, from] = [randomBytes(4096), newId("snp")]
      await new Files(origin).write("/tmp/piece", piece)
      const many = "for n in $(seq 1000); do cat /tmp/piece; done > /workspace/data"
      await text(origin, `${many}; echo kept > /workspace/note; sync`)
      await driver?.stop(origin.id)
      await driver?.snapshot(origin.id, from)
      await driver?.destroy(origin.id)
      await close()
      await detached()
      expect(flipSome(file(), piece)).toBeGreaterThan(100)
      await open()
      const clone = await start({ from })
      // Whatever can still be read is what was written.
      const look =
        "cat /workspace/note; dd if=/workspace/data of=/tmp/read bs=4096 conv=noerror 2>/tmp/why; grep -c 'Input/output error' /tmp/why"
      expect(await text(clone, look)).toMatch(/^kept\n[1-9]\d*\n$/)
      const read = await readAll(new Files(clone).read("/tmp/read"), 4096 * 1000)
      for (let at = 0; at < read.length; at += 4096) expect(read.subarray(at, at + 4096).equals(piece)).toBe(true)
      await driver?.destroy(clone.id)
      await driver?.removeSnapshot(from)
    })

    it("in its superblock is restored from a copy", async () => {
      await open()
      const id = await left()
      zero(file(), 65_536, 4096)
      await open()
      expect(reason()).toMatch(/repaired: its superblock was restored/)
      expect(await note(id)).toBe("kept\n")
      expect((await driver?.probe())?.filter(({ name }) => name === "volume")).toMatchObject([{ isMet: false }])
      await driver?.stop(id)
      await close()
      await open()
      expect(reason()).toBeUndefined()
      expect(await note(id)).toBe("kept\n")
    })

    it("in the log of its last seconds goes on without them", async () => {
      await open()
      const sandbox = await start()
      await text(sandbox, "echo kept > /workspace/note; sync")
      await driver?.stop(sandbox.id)
      execFileSync("btrfs", ["filesystem", "sync", folder()])
      const again = await restart(sandbox.id)
      // What is synced by itself is in the log until the next commit.
      const crashed = join(root, "crashed")
      await expect
        .poll(async () => {
          await text(again, "echo late > /workspace/late; sync /workspace/late")
          cpSync(file(), crashed)
          return logRootOf(crashed)
        })
        .toBeGreaterThan(0)
      await driver?.destroy(sandbox.id)
      await close()
      await detached()
      zero(crashed, placeOf(crashed, logRootOf(crashed)), 16_384)
      execFileSync("mv", [crashed, file()])
      await open()
      expect(reason()).toMatch(/repaired: what was written in its last seconds/)
      for await (const _ of driver?.adopt(never) ?? []) void _
      expect(await note(sandbox.id)).toBe("kept\n")
    })

    it("beyond repair is set aside, and said so until somebody removes it", async () => {
      await open()
      await left()
      const before = readFileSync(file())
      before.fill(0xa5, 0, 200 * MiB)
      writeFileSync(file(), before)
      await open()
      expect(reason()).toMatch(/beyond repair.*set aside, with what was in it: .*volume\.btrfs\.broken-20/)
      expect(broken()).toHaveLength(1)
      expect(readFileSync(join(root, broken()[0] ?? "")).equals(before)).toBe(true)
      expect(sandboxes()).toEqual([])
      expect(await text(await start(), "echo alive")).toBe("alive\n")
      expect(logged.filter((line) => line.includes("volume.note")).length).toBeGreaterThan(0)
      await close(true)
      await open()
      expect(reason()).toMatch(/^a damaged volume was set aside/)
      await close()
      rmSync(join(root, broken()[0] ?? ""))
      await open()
      expect(reason()).toBeUndefined()
      expect(readdirSync(root).filter((name) => !name.startsWith("lock"))).toEqual(["volume", "volume.btrfs"])
    })

    it("is not touched when it is this machine that cannot mount it", async () => {
      await open()
      const id = await left()
      const path = process.env["PATH"]
      const tools = join(root, "tools")
      mkdirSync(tools)
      writeFileSync(join(tools, "mount"), "#!/bin/sh\necho 'mount: failed to setup loop device' >&2; exit 32\n", {
        mode: 0o755,
      })
      process.env["PATH"] = `${tools}:${path}`
      try {
        await expect(open()).rejects.toMatchObject({
          code: "unavailable",
          message: expect.stringMatching(/cannot be mounted/) as string,
        })
      } finally {
        process.env["PATH"] = path
      }
      expect(broken()).toEqual([])
      await open()
      expect(reason()).toBeUndefined()
      expect(await note(id)).toBe("kept\n")
    })
  })

  it("does not hide sandboxes that were made without one", async () => {
    driver = await openOciDriver({ root, programs, log: createLog(() => undefined), volume: { isPlain: true } })
    const sandbox = await start({ limits: { ...defaultLimits, diskBytes: 0 } })
    await text(sandbox, "echo kept > /workspace/note")
    await driver.stop(sandbox.id)
    await close()
    await open()
    expect(driver?.abilities.reasons["diskLimit"]).toMatch(/made without a volume/)
    expect(await note(sandbox.id)).toBe("kept\n")
  })
})

/** Until nothing fits any more. */
function fillUp(path: string): void {
  const fd = openSync(path, "w")
  try {
    for (const bytes of [10 * MiB, MiB, 4096]) {
      try {
        for (;;) writeSync(fd, Buffer.alloc(bytes, 1))
      } catch {
        // The next smaller piece may fit.
      }
    }
  } finally {
    closeSync(fd)
  }
}

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

/** What a sandbox had mounted goes a moment after it. */
function tryUnmount(folder: string): boolean {
  try {
    execFileSync("umount", [folder], { stdio: "pipe" })
    return true
  } catch {
    return false
  }
}

function loopsOf(root: string): string[] {
  return readdirSync("/sys/block").filter((name) => {
    try {
      return readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8").startsWith(`${root}/`)
    } catch {
      return false
    }
  })
}
