import { randomInt } from "node:crypto"
import { once } from "node:events"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { canPause, canSnapshot, lackOf, type Driver, type Sandbox, type Snapshotting } from "./driver.ts"
import { exec, Execution } from "./init/exec.ts"
import { Files, readAll } from "./init/files.ts"
import { Operation } from "./init/operation.ts"
import { Shell } from "./init/shell.ts"
import { specOf } from "./spec-of.ts"
import { defaultLimits, type Image, type SandboxId, type SandboxSpec, type SnapshotId } from "./sandbox-spec.ts"

/** A driver under test, with an image it can start. */
export interface Subject {
  open(): Promise<Driver>
  image(): Promise<Image>
}

const never = new AbortController().signal
/** A time to sleep that nothing else on this machine sleeps: some drivers show the processes of others, too. */
const longSleep = (): string => `sleep ${randomInt(1_000_000, 1_000_000_000)}`
const commandLines = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"

/** What every driver promises. A driver that lacks an ability says so in `abilities`; everything else holds for all. */
export function conformance(subject: Subject): void {
  let driver: Driver
  let image: Image
  const made: SandboxId[] = []

  beforeAll(async () => {
    driver = await subject.open()
    image = await subject.image()
  })
  afterAll(async () => {
    for (const id of made) await driver.destroy(id)
    await driver[Symbol.asyncDispose]()
  })

  const lacking = (): Partial<SandboxSpec["limits"]> => ({
    ...(driver.abilities.diskLimit ? {} : { diskBytes: 0 }),
    ...(lackOf(driver, "limits") === undefined ? {} : { mayBeUnlimited: true }),
  })
  async function create(changes: Partial<SandboxSpec> = {}): Promise<SandboxId> {
    const asked = specOf(image, changes)
    // Where the disk cannot be limited, asking for it is refused; a case below sees to that.
    const spec: SandboxSpec = { ...asked, limits: { ...asked.limits, ...lacking() } }
    made.push(spec.id)
    await driver.create(spec, never)
    return spec.id
  }
  const start = async (changes: Partial<SandboxSpec> = {}): Promise<Sandbox> =>
    driver.start(await create(changes), never)
  const sh = (sandbox: Sandbox, command: string, more: object = {}) =>
    exec(sandbox, { argv: ["sh", "-c", command], ...more })
  const text = async (sandbox: Sandbox, command: string, more: object = {}): Promise<string> =>
    (await sh(sandbox, command, more)).stdout.toString()

  describe("life", () => {
    it("creates, starts, runs, stops and destroys", async () => {
      const id = await create()
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
      const id = await create()
      await text(await driver.start(id, never), "echo kept > note; echo mine > ~/note", { cwd: "/workspace" })
      await driver.stop(id)
      const again = await driver.start(id, never)
      expect(await text(again, "cat note ~/note", { cwd: "/workspace" })).toBe("kept\nmine\n")
    })

    it("refuses what makes no sense, with a typed fault", async () => {
      const id = await create()
      await expect(driver.create(specOf(image, { id }), never)).rejects.toMatchObject({ code: "conflict" })
      await driver.start(id, never)
      await expect(driver.start(id, never)).rejects.toMatchObject({ code: "conflict" })
      await expect(driver.start(newId("sbx"), never)).rejects.toMatchObject({ code: "not_found" })
      const noId = "../x" as SandboxId
      for (const asked of [driver.exists(noId), driver.start(noId, never), driver.stop(noId), driver.destroy(noId)])
        await expect(asked).rejects.toMatchObject({ code: "invalid" })
      await expect(
        create({ image: { layers: ["/no/such/layer"] } }).then((one) => driver.start(one, never)),
      ).rejects.toMatchObject({ code: "not_found" })
      for (const limits of [
        { memoryBytes: 0 },
        { memoryBytes: Number.NaN },
        { pidsMax: -1 },
        { cpus: 0 },
        { pidsMax: 1.5 },
      ]) {
        await expect(create({ limits: { ...defaultLimits, ...limits } })).rejects.toMatchObject({ code: "invalid" })
      }
      await expect(create({ hostname: "no good\n" })).rejects.toMatchObject({ code: "invalid" })
      await expect(create({ image: { layers: ["/a/../etc"] } })).rejects.toMatchObject({ code: "invalid" })
    })

    it("destroys at any moment, and twice", async () => {
      await driver.destroy(newId("sbx"))
      const created = await create()
      await driver.destroy(created)
      await driver.destroy(created)
      const starting = await create()
      const start = driver.start(starting, never).catch((thrown: unknown) => thrown)
      await driver.destroy(starting)
      await start
      expect(await driver.exists(starting)).toBe(false)
    })

    it("rejects with the caller's reason when aborted, and leaves a sandbox that can be started", async () => {
      const reason = new Fault("cancelled", "changed my mind")
      await expect(driver.create(specOf(image), AbortSignal.abort(reason))).rejects.toBe(reason)
      const id = await create()
      const controller = new AbortController()
      const start = driver.start(id, controller.signal)
      setImmediate(() => controller.abort(reason))
      await expect(start).rejects.toBe(reason)
      await driver.start(id, never)
    })

    it("says when a sandbox has ended", async () => {
      const sandbox = await start()
      await using operation = new Operation(await sandbox.connect(), { op: "stop", graceMs: 0 })
      await operation.event("ok")
      await sandbox.ended
      await expect(sh(sandbox, "true")).rejects.toMatchObject({ code: "unavailable" })
      await driver.stop(sandbox.id)
    })

    it("stops what does not want to stop", async () => {
      const sandbox = await start()
      await using stubborn = await Execution.start(sandbox, {
        argv: ["sh", "-c", "trap '' TERM INT HUP; echo up; while :; do sleep 1; done"],
      })
      await stubborn.output().next()
      await driver.stop(sandbox.id, 50)
      await sandbox.ended
    })
  })

  describe("commands", () => {
    let sandbox: Sandbox
    beforeAll(async () => {
      sandbox = await start()
    })

    it("run as an ordinary user without any capability", async () => {
      const ids = await text(sandbox, "id -u; id -g; pwd", { cwd: "/workspace" })
      if (lackOf(driver, "namespaces") === undefined) expect(ids).toBe("1000\n1000\n/workspace\n")
      else expect(ids).toMatch(/^[1-9]\d*\n[1-9]\d*\n\/.+\/workspace\n$/)
      const sets = ["CapInh", "CapPrm", "CapEff", "CapAmb", ...(lackOf(driver, "boundingSet") ? [] : ["CapBnd"])]
      const status = await text(sandbox, "cat /proc/self/status")
      for (const set of sets) expect(status).toContain(`\n${set}:\t0000000000000000\n`)
      expect(status).toContain("\nNoNewPrivs:\t1\n")
      expect(status).toContain("\nSeccomp:\t2\n")
    })

    it("see only their own environment", async () => {
      const env = await exec(sandbox, { argv: ["env"], env: { SECRET: "s3cret", PATH: "/usr/bin:/bin" } })
      const names = env.stdout
        .toString()
        .trim()
        .split("\n")
        .map((line) => line.split("=")[0])
      // A driver whose paths are the host's says where its folders are.
      const places = lackOf(driver, "namespaces") === undefined ? [] : ["TMPDIR", "WORKSPACE"]
      expect(new Set(names)).toEqual(
        new Set(["HOME", "LOGNAME", "PATH", "SECRET", "SHELL", "USER", "WARREN_OP", ...places]),
      )
      expect(await text(sandbox, "cat /proc/1/environ 2>/dev/null | wc -c")).toBe("0\n")
    })

    it("take input and signals", async () => {
      await using cat = await Execution.start(sandbox, { argv: ["cat"], stdin: true })
      await cat.write(Buffer.from("hello"))
      expect((await cat.output().next()).value?.bytes.toString()).toBe("hello")
      cat.control({ op: "signal", name: "SIGTERM" })
      expect(await cat.ended()).toMatchObject({ code: null, signal: "SIGTERM", reason: "signal" })
    })

    it("have a terminal when asked for", async ({ skip }) => {
      const lack = lackOf(driver, "terminals")
      if (lack !== undefined) return skip(lack)
      const result = await exec(sandbox, { argv: ["sh", "-c", "tty; stty size"], pty: { cols: 91, rows: 17 } })
      const name = lackOf(driver, "namespaces") === undefined ? "0" : "\\d+"
      expect(result.stdout.toString()).toMatch(new RegExp(`^/dev/pts/${name}\\r\\n17 91\\r\\n$`))
    })

    it("end at their timeout, with all they started", async () => {
      const sleeping = longSleep()
      const result = await sh(sandbox, `setsid ${sleeping}1 & (${sleeping}2 &) ; ${sleeping}3`, { timeoutMs: 200 })
      expect(result.reason).toBe("timeout")
      expect(await text(sandbox, commandLines)).not.toContain(sleeping)
    })

    it("end when the caller goes away", async () => {
      const sleeping = longSleep()
      const running = await Execution.start(sandbox, { argv: ["sh", "-c", `echo up; exec ${sleeping}`] })
      await running.output().next()
      await running[Symbol.asyncDispose]()
      // init reaps before it answers the next operation, or a little later: asked until it is so.
      await expect.poll(() => text(sandbox, commandLines)).not.toContain(sleeping)
    })

    it("that cannot start say why", async () => {
      await expect(exec(sandbox, { argv: ["no-such-program"] })).rejects.toMatchObject({ code: "not_found" })
      await expect(exec(sandbox, { argv: ["/etc/passwd"] })).rejects.toMatchObject({ code: "invalid" })
      await expect(exec(sandbox, { argv: ["true"], user: "nobody-here" })).rejects.toMatchObject({ code: "invalid" })
      await expect(exec(sandbox, { argv: ["true"], cwd: "/no/such" })).rejects.toMatchObject({ code: "not_found" })
    })

    it("stop at the output they may make", async () => {
      const result = await exec(sandbox, { argv: ["sh", "-c", "yes"], outputBytesMax: 100_000 })
      expect(result).toMatchObject({ reason: "limit", truncated: true })
      expect(result.stdout.length).toBe(100_000)
    })
  })

  describe("isolation", () => {
    it("is measured, and is what was asked for", async () => {
      const sandbox = await start({
        limits: { ...defaultLimits, cpus: 0.5, memoryBytes: 128 * 1024 * 1024, pidsMax: 64 },
      })
      const posture = await sandbox.posture()
      expect(posture.seccompMode).toBe(2)
      expect(posture.noNewPrivileges).toBe(true)
      if (lackOf(driver, "limits") === undefined) {
        expect(posture.limits).toEqual({ cpus: 0.5, memoryBytes: 128 * 1024 * 1024, pidsMax: 64 })
      }
      if (lackOf(driver, "namespaces") === undefined) {
        expect(Object.values(posture.namespaces).every((namespace) => namespace.isOwn)).toBe(true)
        expect(posture.uidMap[0]?.outside).toBeGreaterThan(65_535)
      }
      // Whoever lacks one of these says so where it is looked for.
      const lacks = (["namespaces", "limits"] as const).filter((usual) => lackOf(driver, usual) !== undefined)
      expect(posture.degraded.length).toBeGreaterThanOrEqual(lacks.length)
    })

    it("shows no secret of the host", async () => {
      const sandbox = await start()
      expect(await text(sandbox, "ls /root /home 2>&1; cat /etc/shadow 2>&1")).not.toMatch(/ssh|\$y\$|\$6\$/)
    })

    it("shows no process, mount or network of the host", async ({ skip }) => {
      const lack = lackOf(driver, "namespaces")
      if (lack !== undefined) return skip(lack)
      const sandbox = await start()
      expect(await text(sandbox, "ls /proc | grep -c '^[0-9]'; cat /proc/1/comm")).toMatch(/^[34]\n(warren-)?init\n$/)
      expect(await text(sandbox, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '")).toBe("lo\n")
    })

    it("gives no root inside in profile strict", async () => {
      const strict = await start({ profile: "strict" })
      await expect(exec(strict, { argv: ["id"], user: "root" })).rejects.toMatchObject({ code: "forbidden" })
      expect((await sh(strict, "sudo id")).code).not.toBe(0)
    })

    it("gives root inside in profile dev", async ({ skip }) => {
      if (!driver.abilities.rootInside) return skip(driver.abilities.reasons["rootInside"])
      const dev = await start()
      expect(
        await text(dev, "id -u; touch /usr/local/made && chown 1000 /usr/local/made && stat -c %u /usr/local/made", {
          user: "root",
        }),
      ).toBe("0\n1000\n")
      expect(await text(dev, "sudo id -u; sudo sh -c 'exit 5'; echo $?")).toBe("0\n5\n")
    })

    it("keeps a read-only root read-only, and the workspace writable", async () => {
      const sandbox = await start({ isRootReadOnly: true })
      const attempts =
        'for p in / /usr /etc /var /opt; do touch $p/x 2>/dev/null && echo wrote $p; done; touch x "${TMPDIR:-/tmp}/x" && echo fine'
      const user = driver.abilities.rootInside ? "root" : "user"
      expect(await text(sandbox, attempts, { user, cwd: "/workspace" })).toBe("fine\n")
      expect(await text(sandbox, 'touch y "${TMPDIR:-/tmp}/y" ~/y && echo fine', { cwd: "/workspace" })).toBe("fine\n")
    })
  })

  describe("limits", () => {
    it("are refused where they cannot be kept", async ({ skip }) => {
      if (driver.abilities.diskLimit) return skip("the disk can be limited here")
      const spec = specOf(image, { limits: { ...defaultLimits, diskBytes: 1_000_000 } })
      await expect(driver.create(spec, never)).rejects.toMatchObject({ code: "unsupported" })
      expect(await driver.exists(spec.id)).toBe(false)
    })

    it("kill what takes too much memory, and say so", async ({ skip }) => {
      const lack = lackOf(driver, "limits")
      if (lack !== undefined) return skip(lack)
      const sandbox = await start({ limits: { ...defaultLimits, memoryBytes: 64 * 1024 * 1024 } })
      const bomb = await sh(sandbox, "head -c 200m /dev/zero | tail | wc -c; exec tail /dev/zero")
      expect(bomb.reason).toBe("oom")
      expect((await sandbox.stats()).oomKills).toBeGreaterThan(0)
      expect(await text(sandbox, "echo alive")).toBe("alive\n")
    })

    it("hold a fork bomb", async () => {
      const sandbox = await start({ limits: { ...defaultLimits, pidsMax: 64 } })
      await sh(sandbox, "bomb() { bomb | bomb & }; bomb; sleep 1", { timeoutMs: 2_000 })
      if (lackOf(driver, "limits") === undefined) expect((await sandbox.stats()).pidsRefused).toBeGreaterThan(0)
      await expect.poll(() => text(sandbox, "echo alive").catch((thrown: Fault) => thrown.code)).toBe("alive\n")
    })
  })

  describe("files", () => {
    it("are read, written, listed, moved, watched and removed", async () => {
      const files = new Files(await start())
      const bytes = Buffer.from([0, 255, 1, 254, 10, 13, 0xc3, 0x28])
      expect(await files.write("/workspace/a/b.bin", bytes, { parents: true, mode: 0o640 })).toBe(bytes.length)
      expect(await readAll(files.read("/workspace/a/b.bin"), 1_000)).toEqual(bytes)
      expect(await readAll(files.read("/workspace/a/b.bin", { offset: 2, limit: 3 }), 1_000)).toEqual(
        bytes.subarray(2, 5),
      )
      const { uid, ...entry } = await files.stat("/workspace/a/b.bin")
      expect(entry).toMatchObject({ type: "file", size: 8, mode: 0o640 })
      if (lackOf(driver, "namespaces") === undefined) expect(uid).toBe(1000)
      const changes = await files.watch("/workspace", { recursive: true })
      await files.move("/workspace/a/b.bin", "/workspace/c.bin")
      for await (const change of changes) if (change.path.includes("c.bin") || change.to?.includes("c.bin")) break
      const { entries } = await files.list("/workspace", { depth: 2 })
      expect(entries.map((entry) => entry.name ?? "").toSorted((a, b) => a.localeCompare(b))).toEqual(["a", "c.bin"])
      await files.remove("/workspace/a", { recursive: true })
      await expect(files.stat("/workspace/a")).rejects.toMatchObject({ code: "not_found" })
    })

    it("lead nowhere outside", async () => {
      const sandbox = await start()
      const files = new Files(sandbox)
      await sh(sandbox, "ln -s /etc/shadow shadow; ln -s /proc/1/root/etc up; mkfifo fifo", { cwd: "/workspace" })
      await expect(readAll(files.read("/workspace/shadow"), 1_000)).rejects.toBeInstanceOf(Fault)
      await expect(readAll(files.read("/workspace/up/shadow"), 1_000)).rejects.toBeInstanceOf(Fault)
      await expect(readAll(files.read("/workspace/fifo"), 1_000)).rejects.toMatchObject({ code: "invalid" })
      await expect(files.write("/etc/passwd", Buffer.from("x"))).rejects.toMatchObject({ code: "forbidden" })
    })

    it("travel whole when they are large", async () => {
      const files = new Files(await start())
      const large = Buffer.alloc(20_000_000, "warren")
      await files.write("/workspace/large", large)
      expect((await readAll(files.read("/workspace/large"), large.length)).equals(large)).toBe(true)
    })
  })

  describe("shells and ports", () => {
    it("keep their state between commands", async () => {
      const shell = await Shell.open(await start())
      await shell.run("cd /tmp; export A=1; f() { echo f$A; }")
      expect((await shell.run("pwd; f")).output.toString()).toBe("/tmp\nf1\n")
      expect(await shell.run("exit 3")).toMatchObject({ code: 3, restarted: true })
      expect((await shell.run("echo next")).output.toString()).toBe("next\n")
    })

    it("are reached by connecting inside", async ({ skip }) => {
      const lack = lackOf(driver, "ports")
      if (lack !== undefined) return skip(lack)
      const sandbox = await start()
      const program = "require('net').createServer(s=>s.end('hi '+s.remoteAddress)).listen(8080,()=>console.log('up'))"
      await using server = await Execution.start(sandbox, { argv: ["node", "-e", program] })
      await server.output().next()
      const stream = await sandbox.connect()
      const operation = Operation.request({ op: "connect", port: 8080 })
      stream.write(operation)
      let received = ""
      stream.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")))
      await once(stream, "end")
      stream.destroy()
      expect(received).toMatch(/hi .*127\.0\.0\.1$/)
    })
  })

  describe("numbers", () => {
    it("are there and plausible", async () => {
      const sandbox = await start()
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
      const sandbox = await start()
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
      const sandbox = await start()
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

  describe("snapshots", () => {
    const taken: SnapshotId[] = []
    afterAll(async () => {
      for (const id of taken) if (canSnapshot(driver)) await driver.removeSnapshot(id)
    })

    /** Of a running sandbox, or of a stopped one where it must be: then it is started again. */
    async function snapshotOf(able: Driver & Snapshotting, sandbox: Sandbox): Promise<SnapshotId> {
      const id = newId("snp")
      taken.push(id)
      if (able.abilities.reasons["snapshotCost"] === undefined || canPause(driver, sandbox)) {
        await able.snapshot(sandbox.id, id)
        return id
      }
      await expect(able.snapshot(sandbox.id, id)).rejects.toMatchObject({ code: "conflict" })
      await driver.stop(sandbox.id)
      await able.snapshot(sandbox.id, id)
      await driver.start(sandbox.id, never)
      return id
    }

    it("are there, or it is said why not", async () => {
      expect(canSnapshot(driver)).toBe(driver.abilities.reasons["snapshot"] === undefined)
      if (canSnapshot(driver)) return
      await expect(create({ from: newId("snp") })).rejects.toMatchObject({ code: "unsupported" })
    })

    it("are what others begin with, each with its own", async ({ skip }) => {
      if (!canSnapshot(driver)) return skip(driver.abilities.reasons["snapshot"])
      const parent = await start()
      await sh(parent, "mkdir a; echo one > a/b; chmod 640 a/b; ln a/b hard; ln -s a/b soft; truncate -s 3M sparse", {
        cwd: "/workspace",
      })
      const from = await snapshotOf(driver, parent)
      const children = await Promise.all([1, 2, 3].map(() => start({ from })))
      const look = "cat hard soft; stat -c '%a %h %u' a/b; stat -c '%s' sparse; du -k sparse"
      for (const child of children) {
        expect(await text(child, look, { cwd: "/workspace" })).toBe("one\none\n640 2 1000\n3145728\n0\tsparse\n")
      }
      await Promise.all(children.map((child, n) => sh(child, `echo child${n} > a/b; rm soft`, { cwd: "/workspace" })))
      expect(await text(children[1] ?? parent, "cat hard", { cwd: "/workspace" })).toBe("child1\n")
      const again = await start({ from })
      expect(await text(again, "cat soft", { cwd: "/workspace" })).toBe("one\n")
    })

    it("leave the sandbox as it was, running or paused", async ({ skip }) => {
      if (!canSnapshot(driver)) return skip(driver.abilities.reasons["snapshot"])
      const sandbox = await start()
      if (!canPause(driver, sandbox)) return skip(driver.abilities.reasons["pause"])
      const sleeping = longSleep()
      await using counter = await Execution.start(sandbox, {
        argv: ["sh", "-c", `${sleeping} & while :; do echo x; done`],
        outputBytesMax: 0,
      })
      await counter.output().next()
      await snapshotOf(driver, sandbox)
      expect(await text(sandbox, commandLines)).toContain(sleeping)
      await sandbox.pause()
      await snapshotOf(driver, sandbox)
      const before = (await sandbox.stats()).cpuUs
      expect((await sandbox.stats()).cpuUs).toBe(before)
      await sandbox.resume()
      expect(await text(sandbox, "echo alive")).toBe("alive\n")
    })

    it("are taken of what is stopped, and taken away at any time", async ({ skip }) => {
      if (!canSnapshot(driver)) return skip(driver.abilities.reasons["snapshot"])
      const id = await create()
      await text(await driver.start(id, never), "echo kept > note", { cwd: "/workspace" })
      await driver.stop(id)
      const from = newId("snp")
      await driver.snapshot(id, from)
      expect(await driver.listSnapshots()).toContain(from)
      await driver.destroy(id)
      const child = await create({ from })
      await driver.removeSnapshot(from)
      await driver.removeSnapshot(from)
      expect(await driver.listSnapshots()).not.toContain(from)
      await expect(create({ from })).rejects.toMatchObject({ code: "not_found" })
      expect(await text(await driver.start(child, never), "cat note", { cwd: "/workspace" })).toBe("kept\n")
    })
  })

  it("finds its sandboxes again after the process that made them is gone", async () => {
    const sandbox = await start()
    const sleeping = longSleep()
    await exec(sandbox, { argv: ["sh", "-c", `${sleeping} & echo kept > note`], cwd: "/workspace" })
    await driver[Symbol.asyncDispose]()
    driver = await subject.open()
    const found: Sandbox[] = []
    for await (const one of driver.adopt(never)) found.push(one)
    const again = found.find((one) => one.id === sandbox.id)
    if (!again) throw new Error("the sandbox was not adopted")
    expect(await text(again, "cat note", { cwd: "/workspace" })).toBe("kept\n")
    expect(await text(again, commandLines)).toContain(sleeping)
    await driver.destroy(again.id)
    await again.ended
  })
}
