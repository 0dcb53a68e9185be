import { readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { newId } from "@warren/base/id.ts"
import { silentLog } from "@warren/base/log.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Driver, Sandbox } from "../driver.ts"
import { exec } from "../init/exec.ts"
import { defaultLimits, type Image, type SandboxId, type SandboxSpec } from "../sandbox-spec.ts"
import { specOf } from "../spec-of.ts"
import { openOciDriver } from "./driver.ts"
import { ociSubject, programs } from "./testing/subject.ts"

const never = new AbortController().signal
const isRoot = process.getuid?.() === 0
const hasGroups = process.env["WARREN_TEST_CGROUP_PARENT"] !== undefined
/** How many sandboxes can have ids of their own. */
const slots = Number(process.env["WARREN_TEST_SLOTS"] ?? 16)

describe.skipIf(isRoot || slots > 0)("an ordinary user without subordinate ids", () => {
  it("is told how to get some", async () => {
    const root = join(tmpdir(), "never-made")
    await expect(openOciDriver({ root, programs, log: silentLog })).rejects.toMatchObject({
      code: "unavailable",
      hint: expect.stringMatching(/^sudo usermod --add-subuids/) as string,
    })
  })
})

const isForOthers = isRoot || slots === 0
const refuse = (): Promise<never> => Promise.reject(new Error("this suite is skipped"))
/** A suite that is skipped is read all the same, and a folder it makes would stay. */
const nobody: ReturnType<typeof ociSubject> = { root: "", open: refuse, image: refuse }

describe.skipIf(isForOthers)("an ordinary user", () => {
  const subject = isForOthers ? nobody : ociSubject()
  const made: SandboxId[] = []
  let driver: Driver
  let image: Image

  beforeAll(async () => {
    driver = await subject.open()
    image = await subject.image()
  })
  afterAll(async () => {
    for (const id of made) await driver.destroy(id)
    await driver[Symbol.asyncDispose]()
  })

  const limits = { ...defaultLimits, diskBytes: 0, mayBeUnlimited: true } as const
  const spec = (changes: Partial<SandboxSpec> = {}): SandboxSpec => {
    const one = specOf(image, { limits, ...changes })
    made.push(one.id)
    return one
  }
  async function start(changes: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    const { id } = await create(changes)
    return driver.start(id, never)
  }
  async function create(changes: Partial<SandboxSpec> = {}): Promise<SandboxSpec> {
    const one = spec(changes)
    await driver.create(one, never)
    return one
  }
  const sh = (sandbox: Sandbox, command: string, more: object = {}) =>
    exec(sandbox, { argv: ["sh", "-c", command], ...more })
  const text = async (sandbox: Sandbox, command: string, more: object = {}): Promise<string> =>
    (await sh(sandbox, command, more)).stdout.toString()

  it.skipIf(hasGroups)("without groups is refused, with a hint, unless that is asked for", async () => {
    const limited = spec({ limits: { ...defaultLimits, diskBytes: 0 } })
    await expect(driver.create(limited, never)).rejects.toMatchObject({
      code: "unsupported",
      message: expect.stringMatching(/^memory, cpu and processes cannot be limited: no memory cgroup/) as string,
      hint: expect.stringContaining("mayBeUnlimited") as string,
    })
    expect(await driver.exists(limited.id)).toBe(false)
    const { degraded, limits: measured } = await (await start()).posture()
    expect(degraded).toContainEqual(expect.stringMatching(/^nothing limits its memory, cpu and processes/))
    expect(measured.memoryBytes).toBe(Number.POSITIVE_INFINITY)
  })

  it.skipIf(!hasGroups)("with groups is limited also when it need not be", async () => {
    const { degraded, limits: measured } = await (await start()).posture()
    expect(measured.memoryBytes).toBe(defaultLimits.memoryBytes)
    expect(degraded.filter((words) => words.startsWith("nothing limits its memory"))).toEqual([])
  })

  it("is told that the disk is not limited, and that the image cannot be changed", async () => {
    const sandbox = await start()
    const { degraded } = await sandbox.posture()
    expect(degraded).toContainEqual(expect.stringMatching(/^nothing limits what it writes/))
    expect(degraded).toContainEqual(expect.stringMatching(/nobody's/))
    const attempts = "echo x >> /usr/bin/env; rm /usr/bin/env; chown 0 /etc/passwd; : > /etc/passwd"
    expect((await sh(sandbox, attempts, { user: "root" })).stderr.toString().trim().split("\n")).toHaveLength(4)
    // Beside what the image has there is room.
    const made = "echo hi > /etc/new && mkdir /opt/mine /var/lib/mine /usr/local/lib/mine && cat /etc/new"
    expect(await text(sandbox, made, { user: "root" })).toBe("hi\n")
  })

  it("gives sandboxes ids that are neither their own nor each other's, or says so", async () => {
    const [one, other] = [await start(), await start()]
    const [first, second] = [await one.posture(), await other.posture()]
    const base = (posture: typeof first): number => posture.uidMap[0]?.outside ?? 0
    expect(first.uidMap).toEqual([{ inside: 0, outside: expect.any(Number) as number, count: 65_536 }])
    const own = process.getuid?.() ?? 0
    for (const posture of [first, second]) {
      expect(base(posture) <= own && own < base(posture) + 65_536).toBe(false)
      const shared = expect.stringMatching(/also those of other sandboxes/) as string
      if (slots === 1) expect(posture.degraded).toContainEqual(shared)
      else expect(posture.degraded).not.toContainEqual(shared)
    }
    expect(base(first) === base(second)).toBe(slots === 1)
  })

  it("mounts a folder read-only, and refuses to have it written", async () => {
    const from = join(subject.root, `shared-${newId("sbx")}`)
    writeFileSync(from, "from outside", { mode: 0o644 })
    const mount = { from, to: "/srv/shared" }
    const sandbox = await start({ mounts: [{ ...mount, isReadOnly: true }] })
    expect(await text(sandbox, "cat /srv/shared")).toBe("from outside")
    await expect(create({ mounts: [{ ...mount, isReadOnly: false }] })).rejects.toMatchObject({ code: "unsupported" })
  })

  it("takes away what it may not even look into", async () => {
    const { id } = await create()
    const sandbox = await driver.start(id, never)
    await sh(
      sandbox,
      "mkdir -p /workspace/a/b; echo x > /workspace/a/b/c; chmod 0 /workspace/a/b/c /workspace/a/b; ln -s / /workspace/up",
    )
    const folder = join(subject.root, "volume", id)
    expect(statSync(join(folder, "data")).uid).not.toBe(process.getuid?.())
    expect(() => readdirSync(join(folder, "data"))).toThrow(/EACCES/)
    expect((await sandbox.stats()).diskBytes).toBeGreaterThan(4096)
    await driver.destroy(id)
    expect(readdirSync(join(subject.root, "volume"))).not.toContain(id)
  })

  it("ends everything with the sandbox", async () => {
    const { id } = await create()
    const sandbox = await driver.start(id, never)
    await sh(
      sandbox,
      "for i in 1 2 3; do setsid nohup sleep 100000 >/dev/null 2>&1 & done; sudo setsid sh -c 'trap \"\" TERM; sleep 100000 &' ",
    )
    const namespace = (await sandbox.posture()).namespaces["user"]?.id
    expect(inNamespace(namespace).length).toBeGreaterThan(3)
    await driver.stop(id, 50)
    expect(inNamespace(namespace)).toEqual([])
  })

  it("ends what a launcher that was killed had begun", async () => {
    for (const delayMs of [0, 4, 8, 12, 16, 24, 32, 48]) {
      const { id } = await create()
      const starting = driver.start(id, never).catch((failure: unknown) => failure)
      const launcher = childrenOf(process.pid).find((pid) => commandOf(pid).includes(subject.root))
      if (launcher === undefined) throw new Error("there is no launcher")
      await new Promise((resolve) => setTimeout(resolve, delayMs))
      process.kill(launcher, "SIGKILL")
      await starting
      await driver[Symbol.asyncDispose]()
      driver = await subject.open()
      await driver.destroy(id)
      const socket = join(subject.root, "volume", id, "init.sock")
      // The kernel forgets a socket a moment after its last holder.
      await expect.poll(() => read("/proc/net/unix").includes(socket)).toBe(false)
    }
  })

  function inNamespace(id: string | undefined): string[] {
    return pids().filter((pid) => linkOf(`/proc/${pid}/ns/user`) === id)
  }
})

function childrenOf(parent: number): number[] {
  return pids()
    .map(Number)
    .filter((pid) => Number(/^PPid:\t(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1]) === parent)
}

function commandOf(pid: number): string {
  return read(`/proc/${pid}/cmdline`)
}

function pids(): string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name))
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
