import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { mkdir, rm, symlink, writeFile } from "node:fs/promises"
import path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, guest, Launch } from "./client.ts"
import { config, denySubvolumes } from "./oci.ts"
import { kill, launcher, type Sandbox, started, World } from "./world.ts"

const MiB = 1 << 20

/** Needs loop devices and a kernel with btrfs; says why it does not run otherwise. */
function able(): boolean {
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/crun")) return false
  const here =
    readFileSync("/proc/filesystems", "utf8").includes("btrfs") && spawnSync("mkfs.btrfs", ["--version"]).status === 0
  if (!here || !existsSync("/dev/loop-control")) console.warn("layers on btrfs are not tested: no btrfs or loop device")
  return here && existsSync("/dev/loop-control")
}

/**
 * A launcher with a btrfs of its own. The volume is mounted in the launcher's mount namespace alone: it ends, and gives its
 * loop device back, with the last process in there, however the test ends.
 */
class Volume {
  readonly launch: Launch
  readonly root: string
  readonly #image: string

  private constructor(launch: Launch, root: string, image: string) {
    this.launch = launch
    this.root = root
    this.#image = image
  }

  static async make(world: World, program: string, name: string): Promise<Volume> {
    const image = path.join(world.root, `${name}.img`)
    const root = path.join(world.root, name)
    await mkdir(root)
    execFileSync("truncate", ["-s", "1G", image])
    execFileSync("mkfs.btrfs", ["-q", image])
    const script = path.join(world.root, `${name}.sh`)
    await writeFile(
      script,
      `#!/bin/sh\nexec unshare -m --propagation private sh -c 'mount -o loop,noatime ${image} ${root} && exec "$0" "$@"' ${program} "$@"\n`,
      { mode: 0o755 },
    )
    const launch = new Launch(script, [world.root])
    expect((await launch.ask("hello")).ok).toBeDefined()
    return new Volume(launch, root, image)
  }

  /** A path on the volume for the launcher, and (host) for this process. */
  at(name: string): string {
    return path.join(this.root, name)
  }

  host(name: string): string {
    return `/proc/${this.launch.process.pid}/root${this.at(name)}`
  }

  /** Commits, and wakes the cleaner, which otherwise comes with every commit interval (30 s). */
  sync(): void {
    execFileSync("btrfs", ["filesystem", "sync", this.host("")])
  }

  /** The cleaner works behind; what the kernel leaves, volume.open collects. */
  async gone(): Promise<void> {
    for (let tries = 0; tries < 60 && this.qgroups().length > 0; tries++) {
      this.sync()
      good(await this.launch.ask("volume.open", { path: this.root }))
      await sleep(50)
    }
    expect(this.qgroups()).toEqual([])
  }

  /** Ids of level-0 qgroups of subvolumes. */
  qgroups(): number[] {
    const text = execFileSync("btrfs", ["qgroup", "show", "--raw", this.host("")]).toString()
    return [...text.matchAll(/^0\/(\d+)/gm)].map(([, id]) => Number(id)).filter((id) => id >= 256)
  }

  async end(): Promise<void> {
    await this.launch.end()
    const attached = (): boolean =>
      readdirSync("/sys/block").some((name) => {
        const file = `/sys/block/${name}/loop/backing_file`
        try {
          return readFileSync(file, "utf8").startsWith(this.#image)
        } catch {
          return false
        }
      })
    for (let tries = 0; attached() && tries < 100; tries++) await sleep(20)
    expect(attached()).toBe(false)
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}

function good(answer: Answer): Record<string, unknown> {
  if (!answer.ok) throw new Error(JSON.stringify(answer))
  return answer.ok
}

describe.runIf(able())("layers on btrfs", () => {
  let world: World
  let program: string
  let volume: Volume
  let mountsBefore: string

  beforeAll(async () => {
    world = await World.make()
    mountsBefore = world.mounts()
    program = await launcher(path.join(world.root, "bin"))
    volume = await Volume.make(world, program, "volume")
    expect(good(await volume.launch.ask("volume.open", { path: volume.root }))["quota"]).toMatch(/^(simple|full)$/)
  })

  afterAll(async () => {
    await volume?.end()
    await world.dispose()
    expect(world.mounts()).toBe(mountsBefore)
    expect(existsSync(world.root)).toBe(false)
  })

  const ask = (op: string, fields: object): Promise<Answer> => volume.launch.ask(op, fields)

  async function layer(name: string, bytesMax: number): Promise<string> {
    good(await ask("layer.create", { path: volume.at(name), bytesMax }))
    for (const part of ["upper", "work"]) await mkdir(path.join(volume.host(name), part))
    return volume.at(name)
  }

  /** A sandbox whose writable layer and workspace are on that layer. */
  async function run(at: string): Promise<{ sandbox: Sandbox; end: () => Promise<void> }> {
    const sandbox = await world.sandbox({ upper: `${at}/upper`, work: `${at}/work` })
    const start = started(await ask("start", sandbox.request))
    return {
      sandbox,
      end: async () => {
        await kill(volume.launch, sandbox, start)
      },
    }
  }

  async function usage(name: string): Promise<number> {
    volume.sync()
    return Number(good(await ask("layer.usage", { path: volume.at(name) }))["bytes"])
  }

  it("opens a volume as often as one likes, and nothing else", async () => {
    const { quota } = good(await ask("volume.open", { path: volume.root }))
    expect(good(await ask("volume.open", { path: volume.root }))).toEqual({ quota })
    expect((await ask("volume.open", { path: world.lower })).fault).toMatchObject({ step: "volume", errno: "ENOTSUP" })
    expect((await ask("volume.open", { path: volume.at("none") })).fault).toMatchObject({ errno: "ENOENT" })
    expect((await ask("volume.open", { path: "/tmp" })).fault).toMatchObject({ step: "request", errno: "EINVAL" })
  })

  it("creates for root alone, and only where it may", async () => {
    await layer("own", 10 * MiB)
    const { mode, uid } = statSync(volume.host("own"))
    expect([mode & 0o777, uid]).toEqual([0o700, 0])
    expect(good(await ask("layer.usage", { path: volume.at("own") }))).toMatchObject({ bytesMax: 10 * MiB })
    good(await ask("layer.limit", { path: volume.at("own"), bytesMax: 20 * MiB }))
    expect(good(await ask("layer.usage", { path: volume.at("own") }))).toMatchObject({ bytesMax: 20 * MiB })
    good(await ask("layer.limit", { path: volume.at("own"), bytesMax: 0 }))
    expect(good(await ask("layer.usage", { path: volume.at("own") }))).toMatchObject({ bytesMax: 0 })
    await symlink(volume.at("own"), volume.host("way"))
    for (const [op, fields, fault] of [
      ["layer.create", { path: volume.at("own"), bytesMax: 0 }, { step: "layer", errno: "EEXIST" }],
      ["layer.create", { path: volume.at("no/own"), bytesMax: 0 }, { step: "layer", errno: "ENOENT" }],
      ["layer.create", { path: volume.at("way/x"), bytesMax: 0 }, { step: "layer", errno: "ELOOP" }],
      ["layer.create", { path: `${world.root}/x`, bytesMax: 0 }, { step: "layer", errno: "ENOTSUP" }],
      ["layer.create", { path: "/tmp/x", bytesMax: 0 }, { step: "request", errno: "EINVAL" }],
      ["layer.create", { path: volume.at("x") }, { step: "request", errno: "EINVAL" }],
      ["layer.create", { path: volume.at("x"), bytesMax: -1 }, { step: "request", errno: "EINVAL" }],
      ["layer.limit", { path: volume.at("own/upper"), bytesMax: 0 }, { step: "layer", errno: "EINVAL" }],
      ["layer.usage", { path: volume.at("way") }, { step: "layer", errno: "ELOOP" }],
      ["layer.usage", { path: world.lower }, { step: "layer", errno: "ENOTSUP" }],
      ["layer.snapshot", { from: volume.at("none"), to: volume.at("x"), bytesMax: 0 }, { errno: "ENOENT" }],
      ["layer.snapshot", { from: volume.at("own"), to: volume.at("own"), bytesMax: 0 }, { errno: "EEXIST" }],
      ["layer.snapshot", { from: volume.at("own"), to: `${world.root}/x`, bytesMax: 0 }, { errno: "ENOTSUP" }],
    ] as const)
      expect((await ask(op, fields)).fault, JSON.stringify([op, fields])).toMatchObject(fault)
    expect((await ask("layer.remove", { path: volume.at("way/own") })).fault).toMatchObject({ errno: "ELOOP" })
    good(await ask("layer.remove", { path: volume.at("way") }))
    expect(existsSync(volume.host("own/upper"))).toBe(true)
    good(await ask("layer.remove", { path: volume.at("own") }))
  })

  it("stops a sandbox at its limit, and nobody else", async () => {
    const one = await run(await layer("small", 16 * MiB))
    const two = await run(await layer("neighbour", 64 * MiB))
    const full = await guest(one.sandbox.socket, `fill /data/big ${40 * MiB}`)
    expect(full).toMatch(/^(Disk quota exceeded|Quota exceeded|No space left on device) after \d+$/)
    expect(Number(full.split(" ").at(-1))).toBeLessThanOrEqual(16 * MiB)
    expect(Number(full.split(" ").at(-1))).toBeGreaterThan(8 * MiB)
    expect(await guest(two.sandbox.socket, `fill /data/big ${40 * MiB}`)).toBe("ok")
    expect(Math.abs((await usage("neighbour")) - 40 * MiB)).toBeLessThan(MiB / 2)
    expect(await usage("small")).toBeLessThanOrEqual(16 * MiB)
    // There is a way out: delete, or a larger limit.
    expect(await guest(one.sandbox.socket, "unlink /data/big")).toBe("ok")
    expect(await usage("small")).toBeLessThan(MiB)
    expect(await guest(one.sandbox.socket, `fill /data/again ${4 * MiB}`)).toBe("ok")
    good(await ask("layer.limit", { path: volume.at("small"), bytesMax: 64 * MiB }))
    expect(await guest(one.sandbox.socket, `fill /data/more ${40 * MiB}`)).toBe("ok")
    await one.end()
    await two.end()
    for (const name of ["small", "neighbour"]) good(await ask("layer.remove", { path: volume.at(name) }))
  })

  it("copies the layer of a running sandbox, for one with another range", async () => {
    const origin = await run(await layer("origin", 64 * MiB))
    expect(await guest(origin.sandbox.socket, `fill /data/big ${8 * MiB}`)).toBe("ok")
    await guest(origin.sandbox.socket, "write /data/kept before")
    await guest(origin.sandbox.socket, "chown /data/kept 1000")
    await guest(origin.sandbox.socket, "unlink /data/user")
    const from = volume.at("origin")
    good(await ask("layer.snapshot", { from, to: volume.at("copy"), bytesMax: 16 * MiB }))
    good(await ask("layer.snapshot", { from, to: volume.at("frozen"), bytesMax: 0, readOnly: true }))
    await guest(origin.sandbox.socket, "write /data/kept after")
    const copy = await run(volume.at("copy"))
    expect(copy.sandbox.base).not.toBe(origin.sandbox.base)
    expect(await guest(copy.sandbox.socket, "cat /data/kept")).toBe("before")
    expect(await guest(copy.sandbox.socket, "stat /data/kept")).toMatch(/^1000:1000 /)
    expect(await guest(copy.sandbox.socket, "stat /data/user")).toBe("No such file or directory")
    expect(await guest(origin.sandbox.socket, "cat /data/kept")).toBe("after")
    const big = (name: string): Buffer => readFileSync(volume.host(`${name}/upper/data/big`))
    expect(big("copy").length).toBe(8 * MiB)
    expect(big("copy").equals(big("origin"))).toBe(true)
    await expect(writeFile(volume.host("frozen/upper/x"), "")).rejects.toThrow(/EROFS/)
    // The copy's own limit is on; the origin goes, the copy stays whole.
    expect(await guest(copy.sandbox.socket, `fill /data/own ${40 * MiB}`)).toMatch(/ after \d+$/)
    await origin.end()
    good(await ask("layer.remove", { path: volume.at("origin") }))
    expect(await guest(copy.sandbox.socket, "cat /data/kept")).toBe("before")
    await copy.end()
    for (const name of ["copy", "frozen"]) good(await ask("layer.remove", { path: volume.at(name) }))
    await volume.gone()
  })

  it("removes what a running sandbox still has mounted, what is inside, and what is no layer", async () => {
    const busy = await run(await layer("busy", 16 * MiB))
    await guest(busy.sandbox.socket, `fill /data/big ${4 * MiB}`)
    execFileSync("btrfs", ["-q", "subvolume", "create", volume.host("busy/inner")])
    execFileSync("btrfs", ["-q", "subvolume", "create", volume.host("busy/inner/most")])
    execFileSync("btrfs", ["-q", "subvolume", "snapshot", "-r", volume.host("busy/inner"), volume.host("busy/frozen")])
    good(await ask("layer.remove", { path: volume.at("busy") }))
    expect(existsSync(volume.host("busy"))).toBe(false)
    expect(await guest(busy.sandbox.socket, "ping")).toBe("pong")
    await busy.end()
    good(await ask("layer.remove", { path: volume.at("busy") }))
    await mkdir(volume.host("plain/below"), { recursive: true })
    await writeFile(volume.host("plain/below/file"), "x")
    good(await ask("layer.remove", { path: volume.at("plain") }))
    expect(existsSync(volume.host("plain"))).toBe(false)
    good(await ask("layer.remove", { path: volume.at("no/such") }))
    expect((await ask("layer.remove", { path: volume.root })).fault).toMatchObject({ errno: "EXDEV" })
    await volume.gone()
  })

  it("needs a filter against subvolumes in binds, and removes a full layer with some in it", async () => {
    const at = await layer("nested", 16 * MiB)
    await mkdir(volume.host("nested/space"))
    const open = await world.sandbox({ upper: `${at}/upper`, work: `${at}/work` })
    const binds = [...(open.request["binds"] as object[]), { from: `${at}/space`, to: "/space", readOnly: false }]
    const one = started(await ask("start", { ...open.request, binds }))
    expect(await guest(open.socket, "subvolume /data x")).not.toBe("ok")
    expect(await guest(open.socket, "subvolume /space x")).toBe("ok")
    expect(await guest(open.socket, `fill /space/x/big ${20 * MiB}`)).toBe("ok")
    await kill(volume.launch, open, one)

    const closed = await world.sandbox({ upper: `${at}/upper`, work: `${at}/work`, binds })
    const filtered = JSON.stringify(config({ seccomp: denySubvolumes() }))
    const two = started(await ask("start", { ...closed.request, config: filtered }))
    expect(await guest(closed.socket, "subvolume /space y")).toBe("Operation not permitted")
    expect(await guest(closed.socket, `fill /space/big ${20 * MiB}`)).toMatch(/ after \d+$/)
    expect(await guest(closed.socket, `fill /data/big ${20 * MiB}`)).toMatch(/ after \d+$/)
    good(await ask("layer.remove", { path: at }))
    await kill(volume.launch, closed, two)
    await volume.gone()
  })

  it("counts for a layer what it wrote, also when only a snapshot has it still (simple quotas)", async () => {
    const at = await layer("writer", 16 * MiB)
    const big = volume.host("writer/big")
    await writeFile(big, Buffer.alloc(10 * MiB, 1))
    good(await ask("layer.snapshot", { from: at, to: volume.at("reader"), bytesMax: MiB }))
    const simple = good(await ask("volume.open", { path: volume.root }))["quota"] === "simple"
    expect((await usage("reader")) < MiB).toBe(simple)
    await rm(big)
    expect((await usage("writer")) > 9 * MiB).toBe(simple)
    good(await ask("layer.remove", { path: at }))
    for (let i = 0; i < 5; i++) {
      volume.sync()
      await sleep(30)
    }
    if (simple) expect(volume.qgroups().length).toBe(2)
    good(await ask("layer.remove", { path: volume.at("reader") }))
    await volume.gone()
  })

  it("leaves no qgroup behind after 100 layers", async () => {
    const times: Record<string, number[]> = {}
    const timed = async (op: string, fields: object): Promise<void> => {
      const before = performance.now()
      good(await ask(op, fields))
      ;(times[op] ??= []).push(performance.now() - before)
    }
    for (let i = 0; i < 100; i++) {
      const at = volume.at(`n${i}`)
      await timed("layer.create", { path: at, bytesMax: MiB })
      await timed("layer.usage", { path: at })
      await timed("layer.limit", { path: at, bytesMax: 2 * MiB })
      if (i % 5 === 0) {
        await writeFile(volume.host(`n${i}/file`), Buffer.alloc(100_000))
        await timed("layer.snapshot", { from: at, to: `${at}.copy`, bytesMax: MiB })
        await timed("layer.remove", { path: `${at}.copy` })
      }
      await timed("layer.remove", { path: at })
    }
    await volume.gone()
    for (const [op, list] of Object.entries(times)) {
      list.sort((a, b) => a - b)
      const at = (part: number): string => (list[Math.floor(list.length * part)] ?? 0).toFixed(2)
      console.log(`${op}: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms (n=${list.length})`)
    }
  })

  it("works with full quotas, if those are on", async () => {
    const other = await Volume.make(world, program, "full")
    try {
      const unlimited = { path: other.at("early"), bytesMax: MiB }
      expect((await other.launch.ask("layer.create", unlimited)).fault).toMatchObject({ errno: "ENOTCONN" })
      expect(existsSync(other.host("early"))).toBe(false)
      execFileSync("btrfs", ["quota", "enable", other.host("")])
      expect(good(await other.launch.ask("volume.open", { path: other.root }))).toEqual({
        quota: "full",
      })
      good(await other.launch.ask("layer.create", { path: other.at("a"), bytesMax: 8 * MiB }))
      await writeFile(other.host("a/file"), Buffer.alloc(4 * MiB, 1))
      other.sync()
      good(
        await other.launch.ask("layer.snapshot", {
          from: other.at("a"),
          to: other.at("b"),
          bytesMax: 8 * MiB,
        }),
      )
      other.sync()
      const { bytes } = good(await other.launch.ask("layer.usage", { path: other.at("b") }))
      expect(Math.abs(Number(bytes) - 4 * MiB)).toBeLessThan(MiB / 2)
      await expect(writeFile(other.host("b/more"), Buffer.alloc(8 * MiB, 1))).rejects.toMatchObject({ errno: -122 })
      for (const name of ["a", "b"]) good(await other.launch.ask("layer.remove", { path: other.at(name) }))
      await other.gone()
    } finally {
      await other.end()
    }
  })
})
