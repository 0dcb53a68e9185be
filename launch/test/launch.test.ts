import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { link, mkdir, stat, symlink, writeFile } from "node:fs/promises"
import path from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { frame, guest, Launch } from "./client.ts"
import { alive, crun, freeze, inRange, kill, shell, started, World, Ground } from "./world.ts"

const able = process.getuid?.() === 0 && existsSync("/usr/bin/crun")

describe.runIf(able)("warren-launch", () => {
  const ground = new Ground()
  let world: World
  let program: string
  let launch: Launch
  beforeAll(() => void ({ world, program, launch } = ground))

  describe("kill", () => {
    it("takes the whole sandbox, twice is fine, and leaves no zombie", async () => {
      const sandbox = await world.sandbox()
      const start = started(await launch.ask("start", sandbox.request))
      await guest(sandbox.socket, "fork")
      expect((await inRange(sandbox.base)).length).toBeGreaterThan(1)
      expect((await kill(launch, sandbox, start)).ok?.["killed"]).toBeGreaterThan(0)
      expect((await kill(launch, sandbox, start)).ok).toEqual({ killed: 0 })
      expect(await inRange(sandbox.base)).toEqual([])
      expect(existsSync(`/proc/${start.pid}`)).toBe(false)
    })

    it("never touches a process whose start differs", async () => {
      const sandbox = await world.sandbox()
      const start = started(await launch.ask("start", sandbox.request))
      const answer = await launch.ask("kill", { pid: start.pid, startTicks: "12345" })
      expect(answer.ok).toEqual({ killed: 0 })
      expect(await guest(sandbox.socket, "ping")).toBe("pong")
      await kill(launch, sandbox, start)
    })

    it("takes any number at once, also more than it has places for", async () => {
      const answers = await Promise.all(
        Array.from({ length: 1500 }, (_, index) => launch.ask("kill", { pid: 2 ** 30 + index, startTicks: "1" })),
      )
      expect(answers.every(({ ok }) => ok?.["killed"] === 0)).toBe(true)
      const sandboxes = await Promise.all(Array.from({ length: 300 }, () => world.sandbox({ runtime: ["/nowhere/x"] })))
      const refused = await Promise.all(sandboxes.map(({ request }) => launch.ask("start", request)))
      expect(refused.every(({ fault }) => fault?.step === "runtime" || fault?.errno === "EAGAIN")).toBe(true)
      const cleared = await Promise.all(sandboxes.map(({ cgroups }) => launch.ask("kill", { cgroups })))
      expect(cleared.every(({ ok }) => ok !== undefined)).toBe(true)
    })

    it("empties cgroups of whoever is still in there", async () => {
      const sandbox = await world.sandbox()
      const start = started(await launch.ask("start", sandbox.request))
      const answer = await launch.ask("kill", { cgroups: sandbox.cgroups })
      expect(answer.ok?.["killed"]).toBeGreaterThan(0)
      expect(alive(start.pid)).toBe(false)
      for (const folder of sandbox.cgroups) expect(existsSync(folder)).toBe(false)
    })

    it("empties those that somebody froze", async () => {
      const sandbox = await world.sandbox()
      const start = started(await launch.ask("start", sandbox.request))
      await freeze(sandbox)
      expect(await launch.ask("kill", { cgroups: sandbox.cgroups })).toMatchObject({ ok: { killed: 1 } })
      expect(alive(start.pid)).toBe(false)
    })

    it("empties and removes the groups in them, too", async () => {
      const { cgroups } = await world.sandbox()
      const child = spawn("sleep", ["1000"])
      const ended = once(child, "exit")
      for (const folder of cgroups) {
        await mkdir(path.join(folder, "one", "in", "another"), { recursive: true })
        await mkdir(path.join(folder, "one", "beside"))
        await writeFile(path.join(folder, "one", "in", "cgroup.procs"), String(child.pid))
      }
      expect(await launch.ask("kill", { cgroups })).toMatchObject({ ok: { killed: 1 } })
      expect(await ended).toEqual([null, "SIGKILL"])
      for (const folder of cgroups) expect(existsSync(folder)).toBe(false)
    })

    it.each([
      ["itself", () => ({ pid: launch.process.pid, startTicks: "1" })],
      ["init of the machine", () => ({ pid: 1, startTicks: "1" })],
      ["a group", () => ({ pid: -5, startTicks: "1" })],
      ["ticks that are no digits", () => ({ pid: 99999, startTicks: "1 or 2" })],
      ["a whole hierarchy", () => ({ cgroups: ["/sys/fs/cgroup/memory"] })],
    ])("refuses %s", async (_, fields) => {
      expect((await launch.ask("kill", fields())).fault).toMatchObject({ step: "request", errno: "EINVAL" })
    })
  })

  describe("watch", () => {
    it("tells the end of an init, with its status", async () => {
      const sandbox = await world.sandbox()
      const { pid, startTicks } = started(await launch.ask("start", sandbox.request))
      expect((await launch.ask("watch", { pid, startTicks })).ok).toEqual({})
      await guest(sandbox.socket, "exit 7")
      while (!launch.events.some((event) => event.pid === pid)) await launch.arrival()
      expect(launch.events.find((event) => event.pid === pid)).toEqual({ event: "exited", pid, startTicks, code: 7 })
      await launch.ask("kill", { cgroups: sandbox.cgroups })
      expect((await launch.ask("watch", { pid, startTicks })).ok).toEqual({})
      while (launch.events.filter((event) => event.pid === pid).length < 2) await launch.arrival()
    })
  })

  describe("remove", () => {
    it("makes folders with owners, in places that lead nowhere else, and counts what is in them", async () => {
      const tree = path.join(world.root, "folders")
      await mkdir(tree)
      await symlink(world.lower, path.join(tree, "link"))
      const folder = (at: string, mode = 0o750, owner = 7) => ({ path: at, mode, owner })
      const make = (folders: object[]) => launch.ask("folders", { path: tree, base: 70_000, folders })
      expect((await make([folder("/a"), folder("/a/b", 0o1777, 1000), folder("/a")])).ok).toEqual({})
      const { uid, gid, mode } = await stat(path.join(tree, "a/b"))
      expect([uid, gid, mode & 0o7777]).toEqual([71_000, 71_000, 0o1777])
      expect((await make([folder("/link/x")])).fault).toMatchObject({ step: "folders", errno: "ELOOP" })
      expect((await make([folder("/no/such")])).fault).toMatchObject({ step: "folders", errno: "ENOENT" })
      for (const wrong of [folder("a"), folder("/a/../b"), folder("/a", 0o4755), folder("/a", 0o755, 65_536), {}]) {
        expect((await make([wrong])).fault).toMatchObject({ step: "request", errno: "EINVAL" })
      }
      const before = (await launch.ask("usage", { path: tree })).ok as { bytes: number }
      await writeFile(path.join(tree, "a/b/large"), Buffer.alloc(1_000_000, 1))
      await link(path.join(tree, "a/b/large"), path.join(tree, "a/again"))
      const after = (await launch.ask("usage", { path: tree })).ok as { bytes: number }
      expect(after.bytes - before.bytes).toBeGreaterThanOrEqual(1_000_000)
      expect(after.bytes - before.bytes).toBeLessThan(1_100_000)
      await launch.ask("remove", { path: tree })
    })

    it("takes a tree away, however deep, and what is not there is fine", async () => {
      const tree = path.join(world.root, "tree")
      await mkdir(path.join(tree, "a/b/c"), { recursive: true })
      await writeFile(path.join(tree, "a/b/file"), "x")
      await symlink(world.lower, path.join(tree, "a/link"))
      execFileSync("sh", [
        "-c",
        'cd "$1" && i=0; while [ $i -lt 600 ]; do mkdir ddddddddddddddd && cd -P ddddddddddddddd || exit 1; i=$((i+1)); done; : > leaf',
        "sh",
        tree,
      ])
      expect((await launch.ask("remove", { path: tree })).ok).toEqual({})
      expect(existsSync(tree)).toBe(false)
      expect(existsSync(path.join(world.lower, "data/root"))).toBe(true)
      expect((await launch.ask("remove", { path: tree })).ok).toEqual({})
    })

    it("refuses what is not strictly below a root", async () => {
      for (const target of [
        "/etc",
        world.root,
        `${world.root}-other/x`,
        `${world.root}/../x`,
        `${world.root}/./x`,
        "relative",
        "/",
      ]) {
        expect((await launch.ask("remove", { path: target })).fault, target).toMatchObject({
          step: "request",
          errno: "EINVAL",
        })
      }
    })

    it("does not go through a symbolic link, but removes the link itself", async () => {
      const outside = path.join(world.root, "outside")
      await mkdir(path.join(outside, "x"), { recursive: true })
      await symlink(outside, path.join(world.root, "way"))
      expect((await launch.ask("remove", { path: path.join(world.root, "way/x") })).fault).toMatchObject({
        step: "remove",
        errno: "ELOOP",
      })
      expect(existsSync(path.join(outside, "x"))).toBe(true)
      expect((await launch.ask("remove", { path: path.join(world.root, "way") })).ok).toEqual({})
      expect(existsSync(path.join(outside, "x"))).toBe(true)
    })

    it("stops at a mount", async () => {
      const tree = path.join(world.root, "mounted")
      await mkdir(path.join(tree, "point"), { recursive: true })
      execFileSync("mount", ["-t", "tmpfs", "none", path.join(tree, "point")])
      try {
        await writeFile(path.join(tree, "point/kept"), "x")
        const own = new Launch(program, [world.root])
        expect((await own.ask("remove", { path: tree })).fault).toMatchObject({ step: "remove", errno: "EBUSY" })
        expect((await own.ask("remove", { path: path.join(tree, "point/kept") })).fault).toMatchObject({
          errno: "EXDEV",
        })
        await own.end()
        expect(existsSync(path.join(tree, "point/kept"))).toBe(true)
      } finally {
        execFileSync("umount", [path.join(tree, "point")])
      }
    })
  })

  describe("the wire", () => {
    it("answers nonsense and goes on", async () => {
      const own = new Launch(program, [world.root])
      const nonsense = [
        "[]",
        "{",
        "nonsense",
        '{"id":1.5,"op":"hello"}',
        '{"id":"1"}',
        '{"op":"hello"}',
        `{"a":${"[".repeat(50)}`,
        '{"id":1,"op":"hello"}x',
        '{"id":-1,"op":"hello"}',
        '"\\ud800"',
        '{"id":3,"id":4',
      ]
      for (const text of nonsense) own.raw(frame(text))
      own.raw(frame(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]).toString("latin1")))
      expect((await own.ask("hello")).ok).toMatchObject({ version: 1 })
      expect(own.strays.length).toBe(nonsense.length + 1)
      expect((await own.ask("nothing")).fault).toMatchObject({ errno: "ENOSYS" })
      expect(await own.end()).toBe(0)
    })

    it.each([
      ["an empty frame", Buffer.alloc(4)],
      ["a frame over the limit", Buffer.from([0xff, 0xff, 0xff, 0xff])],
    ])("ends after %s", async (_, bytes) => {
      const own = new Launch(program, [world.root])
      own.raw(bytes)
      expect(await own.exited).toBe(0)
      expect(own.strays[0]?.fault?.step).toBe("frame")
    })

    it("takes frames in any pieces", async () => {
      const own = new Launch(program, [world.root])
      const bytes = Buffer.concat([frame('{"id":500,"op":"hello"}'), frame("[1]")])
      for (const byte of bytes) {
        own.raw(Buffer.from([byte]))
        await new Promise((resolve) => {
          setImmediate(resolve)
        })
      }
      while (own.strays.length === 0) await own.arrival()
      await own.end()
    })

    it("answers every mangled request exactly once, and lives", async () => {
      const own = new Launch(program, [world.root])
      const sandbox = await world.sandbox({ runtime: ["/nowhere/runtime"], config: "{}", cgroups: [] })
      const ops = ["start", "kill", "watch", "remove", "volume.open", "layer.snapshot", "layer.remove"]
      const none = `${sandbox.folder}/none`
      let seed = 42
      const random = (below: number): number => {
        seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff
        return (seed >> 8) % below
      }
      const answered: Promise<unknown>[] = []
      for (let i = 0; i < 3000; i++) {
        const op = ops[random(ops.length)] ?? "start"
        const fields =
          op === "start"
            ? sandbox.request
            : { pid: 2 ** 30, startTicks: "1", path: none, from: none, to: none, bytesMax: 0, cgroups: [] }
        const bytes = frame(JSON.stringify({ id: 1_000_000 + i, op, ...fields }))
        for (let n = random(4); n > 0; n--) bytes[4 + random(bytes.length - 4)] = random(256)
        own.raw(bytes)
        if (i % 50 === 49) await own.ask("hello")
      }
      answered.push(own.ask("hello"))
      await Promise.all(answered)
      expect(own.process.exitCode).toBe(null)
      expect(await own.end()).toBe(0)
      expect(await inRange(sandbox.base)).toEqual([])
    })

    it("refuses an id that is under way", async () => {
      const own = new Launch(program, [world.root])
      const sandbox = await world.sandbox({ runtime: shell("sleep 1000"), timeoutMs: 2000 })
      const first = own.ask("start", sandbox.request)
      own.raw(frame('{"id":1,"op":"hello"}'))
      expect((await first).fault).toMatchObject({ errno: "EALREADY" })
      await own.end()
      expect(await inRange(sandbox.base)).toEqual([])
    })
  })

  describe("the end", () => {
    it("stops half-made sandboxes when its input closes, and leaves finished ones alone", async () => {
      const own = new Launch(program, [world.root])
      const finished = await world.sandbox()
      const start = started(await own.ask("start", finished.request))
      const half = await world.sandbox({ runtime: shell("setsid sleep 1000 & sleep 1000") })
      void own.ask("start", half.request)
      while ((await inRange(half.base)).length < 2)
        await new Promise((resolve) => {
          setTimeout(resolve, 5)
        })
      const another = await world.sandbox({ runtime: crun("another") })
      void own.ask("start", another.request)
      expect(await own.end()).toBe(0)
      expect(await inRange(half.base)).toEqual([])
      expect(await inRange(another.base)).toEqual([])
      expect(await guest(finished.socket, "ping")).toBe("pong")
      // A later launcher takes over.
      expect((await launch.ask("watch", { pid: start.pid, startTicks: start.startTicks })).ok).toEqual({})
      expect((await kill(launch, finished, start)).ok?.["killed"]).toBeGreaterThan(0)
      while (!launch.events.some((event) => event.pid === start.pid)) await launch.arrival()
      for (const sandbox of [half, another])
        expect((await launch.ask("kill", { cgroups: sandbox.cgroups })).ok).toBeDefined()
    })
  })
})
