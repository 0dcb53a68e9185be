import { randomBytes, randomInt } from "node:crypto"
import { existsSync, readFileSync, realpathSync } from "node:fs"
import { chown, mkdir, mkdtemp, rm, rmdir, writeFile } from "node:fs/promises"
import path from "node:path"
import { afterAll, beforeAll, expect } from "vitest"
import { buildLaunch, compile } from "../build.ts"
import { type Answer, Launch } from "./client.ts"
import { config } from "./oci.ts"

/** The one that was built already, or one built for this. */
export async function launcher(folder: string): Promise<string> {
  return process.env["WARREN_LAUNCH"] ?? (await buildLaunch(folder))
}

/** A launcher for the tests of one file; at the end no mount of it is left. Called where they are described. */
export class Ground {
  world!: World
  program!: string
  launch!: Launch
  /** Of the machine, before there was a launcher. */
  mounts = ""

  constructor() {
    beforeAll(async () => {
      this.world = await World.make()
      this.program = await launcher(path.join(this.world.root, "bin"))
      this.mounts = this.world.mounts()
      this.launch = new Launch(this.program, [this.world.root])
    })
    afterAll(async () => {
      await this.launch.end()
      const after = this.world.mounts()
      await this.world.dispose()
      expect(after).toBe(this.mounts)
      expect(existsSync(this.world.root)).toBe(false)
    })
  }
}

/** Everything of one test file: short paths (a socket's name is at most 107 bytes), layers, cgroups. */
export class World {
  readonly root: string
  readonly lower: string
  readonly init: string
  #cgroups: string[] = []
  /** Of the last sandbox. Begins anywhere: test files run side by side, and look for their processes by range. */
  #base = 65536 * randomInt(8192, 28_000)

  private constructor(root: string) {
    this.root = root
    this.lower = path.join(root, "lower")
    this.init = path.join(root, "init")
  }

  static async make(): Promise<World> {
    const world = new World(await mkdtemp("/tmp/launch-test-"))
    await compile([path.join(import.meta.dirname, "guest.c")], world.init)
    for (const name of ["etc", "dev", "proc", "tmp", "data", "home/user"])
      await mkdir(path.join(world.lower, name), { recursive: true })
    await writeFile(path.join(world.lower, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")
    await writeFile(path.join(world.lower, "data/root"), "of root\n")
    await writeFile(path.join(world.lower, "data/user"), "of user\n")
    await chown(path.join(world.lower, "data/user"), 1000, 1000)
    return world
  }

  /** A sandbox's places on disk, and its request. */
  async sandbox(over: Record<string, unknown> = {}): Promise<Sandbox> {
    const name = randomBytes(4).toString("hex")
    const folder = path.join(this.root, name)
    for (const part of ["rw/upper", "rw/work", "workspace"]) await mkdir(path.join(folder, part), { recursive: true })
    await chown(path.join(folder, "workspace"), 1000, 1000)
    this.#base += 65536
    const request = {
      lowers: [this.lower],
      upper: path.join(folder, "rw/upper"),
      work: path.join(folder, "rw/work"),
      binds: [
        { from: this.init, to: "/run/warren/init", readOnly: true, idmap: true },
        { from: path.join(folder, "workspace"), to: "/workspace", readOnly: false, idmap: true },
      ],
      map: { base: this.#base, size: 65536 },
      cgroups: await this.cgroups(name),
      socket: path.join(folder, "init.sock"),
      config: JSON.stringify(config()),
      runtime: crun(name),
      ...over,
    }
    return { name, folder, socket: request.socket, base: this.#base, cgroups: request.cgroups, request }
  }

  async cgroups(name: string): Promise<string[]> {
    const top = "/sys/fs/cgroup"
    const v2 = existsSync(`${top}/cgroup.controllers`)
    const made = (v2 ? [top] : ["memory", "pids", "cpu", "freezer"].map((part) => `${top}/${part}`)).map(
      (part) => `${part}/${path.basename(this.root)}/${name}`,
    )
    for (const folder of made) await mkdir(folder, { recursive: true })
    this.#cgroups.push(...made)
    return made
  }

  /** The host's mounts that a launcher of this world could have made or taken away; others' tests mount things as well. */
  mounts(): string {
    return readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => line.includes(this.root) || / (\/run|\/sys\/fs\/cgroup)[ /]/.test(line))
      .join("\n")
  }

  async dispose(): Promise<void> {
    for (const folder of this.#cgroups) {
      // A failed test may have left its sandbox.
      const members = existsSync(folder)
        ? readFileSync(`${folder}/cgroup.procs`, "utf8").split("\n").filter(Boolean)
        : []
      for (const pid of members) process.kill(Number(pid), "SIGKILL")
      for (let tries = 0; members.length > 0 && tries < 50 && readFileSync(`${folder}/cgroup.procs`, "utf8"); tries++) {
        await new Promise((resolve) => {
          setTimeout(resolve, 10)
        })
      }
      await rmdir(folder).catch(() => {})
      await rmdir(path.dirname(folder)).catch(() => {})
    }
    await rm(this.root, { recursive: true, force: true })
  }
}

export interface Sandbox {
  readonly name: string
  readonly folder: string
  readonly socket: string
  readonly base: number
  readonly cgroups: string[]
  readonly request: Record<string, unknown>
}

export function crun(name: string): string[] {
  return [
    "/usr/bin/crun",
    "--root",
    "/run/state",
    "--cgroup-manager=disabled",
    "run",
    "--detach",
    "--no-new-keyring",
    "--preserve-fds=1",
    "--bundle",
    "/run",
    "--pid-file",
    "/run/pid",
    name,
  ]
}

/** A runtime that runs this script as root of the new user namespace. */
export function shell(script: string): string[] {
  return [realpathSync("/bin/sh"), "-c", script]
}

export interface Started {
  readonly pid: number
  readonly startTicks: string
  readonly idmap: { lower: boolean; upper: boolean }
}

export function started(answer: Answer): Started {
  if (!answer.ok) throw new Error(JSON.stringify(answer))
  return answer.ok as unknown as Started
}

export async function kill(launch: Launch, sandbox: Sandbox, { pid, startTicks }: Started): Promise<Answer> {
  return await launch.ask("kill", { pid, startTicks, cgroups: sandbox.cgroups })
}

export function alive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return false
  }
}

/** Processes of this sandbox's uid range, anywhere on the machine. */
export async function inRange(base: number): Promise<number[]> {
  const { readdir } = await import("node:fs/promises")
  const found: number[] = []
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue
    try {
      const uid = Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1])
      if (uid >= base && uid < base + 65536) found.push(Number(name))
    } catch {
      // it ended meanwhile
    }
  }
  return found
}

/** What somebody does to a sandbox who knows nothing of launchers. */
export async function freeze({ cgroups }: Pick<Sandbox, "cgroups">): Promise<void> {
  const ways = [
    ["freezer.state", "FROZEN"],
    ["cgroup.freeze", "1"],
  ] as const
  for (const folder of cgroups)
    for (const [file, frozen] of ways)
      if (existsSync(path.join(folder, file))) await writeFile(path.join(folder, file), frozen)
}
