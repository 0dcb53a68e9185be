import { execFileSync } from "node:child_process"
import { existsSync, lstatSync, readFileSync, statSync } from "node:fs"
import { chown, link, mkdir, readdir, stat, symlink, writeFile } from "node:fs/promises"
import path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { buildLaunch, buildLibraries } from "../build.ts"
import { frame, guest, Launch } from "./client.ts"
import { config } from "./oci.ts"
import { alive, crun, inRange, kill, shell, started, World } from "./world.ts"

const able = process.getuid?.() === 0 && existsSync("/usr/bin/crun")

describe.runIf(able)("warren-launch", () => {
  let world: World
  let program: string
  let launch: Launch
  let mountsBefore: string

  beforeAll(async () => {
    world = await World.make()
    program = process.env["WARREN_LAUNCH"] ?? (await buildLaunch(path.join(world.root, "bin")))
    mountsBefore = world.mounts()
    launch = new Launch(program, [world.root])
  })

  afterAll(async () => {
    await launch?.end()
    const mountsAfter = world.mounts()
    await world.dispose()
    expect(mountsAfter).toBe(mountsBefore)
    expect(existsSync(world.root)).toBe(false)
  })

  describe("start", () => {
    it("gives an init that answers, confined as the config says, and leaves no mount on the host", async () => {
      const sandbox = await world.sandbox()
      const start = started(await launch.ask("start", sandbox.request))
      expect(start.idmap).toEqual({ lower: true, upper: true })
      expect(await guest(sandbox.socket, "ping")).toBe("pong")
      expect(lstatSync(sandbox.socket).mode & 0o777).toBe(0o600)
      const status = readFileSync(`/proc/${start.pid}/status`, "utf8")
      expect(status).toMatch(new RegExp(`^Uid:\\s+${sandbox.base + 65533}\\s`, "m"))
      for (const set of ["Inh", "Prm", "Eff", "Bnd", "Amb"])
        expect(status).toMatch(new RegExp(`^Cap${set}:\\s+00000000800405fb$`, "m"))
      expect(status).toMatch(/^NoNewPrivs:\s+1$/m)
      expect(status).toMatch(/^Seccomp:\s+2$/m)
      expect(status).toMatch(/^Groups:\s*$/m)
      expect(await guest(sandbox.socket, "keyctl")).toBe("Operation not permitted")
      expect(readFileSync(`/proc/${start.pid}/uid_map`, "utf8").trim().split(/\s+/)).toEqual([
        "0",
        String(sandbox.base),
        "65536",
      ])
      for (const name of ["pid", "ipc", "uts", "mnt", "net", "user", "cgroup"]) {
        const link = (pid: number | "self"): string => execFileSync("readlink", [`/proc/${pid}/ns/${name}`]).toString()
        expect(link(start.pid), name).not.toBe(link("self"))
      }
      expect((await readdir(`/proc/${start.pid}/fd`)).sort()).toEqual(["0", "1", "2", "3"])
      expect(readFileSync(`/proc/${start.pid}/cgroup`, "utf8")).toContain(
        `/${path.basename(world.root)}/${sandbox.name}`,
      )
      expect(world.mounts()).toBe(mountsBefore)
      const inside = await guest(sandbox.socket, "cat /proc/self/mountinfo")
      expect(inside).not.toContain("upperdir=/")
      expect(statSync("/dev/null").uid).toBe(0)
      expect((await kill(launch, sandbox, start)).ok?.["killed"]).toBeGreaterThan(0)
      expect(await inRange(sandbox.base)).toEqual([])
      for (const folder of sandbox.cgroups) expect(existsSync(folder)).toBe(false)
    })

    it("lets root inside edit, chown and delete what a layer holds, in its own layer alone", async () => {
      const sandbox = await world.sandbox()
      const start = started(await launch.ask("start", sandbox.request))
      const ask = (line: string): Promise<string> => guest(sandbox.socket, line)
      expect(await ask("stat /data/root")).toMatch(/^0:0 /)
      expect(await ask("stat /data/user")).toMatch(/^1000:1000 /)
      expect(await ask("write /data/root changed")).toBe("ok")
      expect(await ask("chown /data/root 1000")).toBe("ok")
      expect(await ask("unlink /data/user")).toBe("ok")
      expect(await ask("write /data/new fresh")).toBe("ok")
      expect(await ask("write /workspace/made fresh")).toBe("ok")
      expect(await ask("chown /workspace/made 1000")).toBe("ok")
      expect(await ask("mknod /data/null")).toBe("Operation not permitted")
      expect(await ask("write /run/warren/init x")).toMatch(/Read-only file system|Text file busy/)
      expect(await ask("stat /data/user")).toBe("No such file or directory")
      await kill(launch, sandbox, start)

      const host = (name: string): string => path.join(world.lower, "data", name)
      expect(readFileSync(host("root"), "utf8")).toBe("of root\n")
      expect(statSync(host("root")).uid).toBe(0)
      expect(readFileSync(host("user"), "utf8")).toBe("of user\n")
      expect(existsSync(host("new"))).toBe(false)
      const upper = (name: string): string => path.join(sandbox.folder, "rw/upper/data", name)
      expect([statSync(upper("root")).uid, statSync(upper("new")).uid]).toEqual([1000, 0])
      expect(lstatSync(upper("user")).isCharacterDevice()).toBe(true)
      expect(statSync(path.join(sandbox.folder, "workspace/made")).uid).toBe(1000)
    })

    it("serves the same writable layer to a sandbox with another range", async () => {
      const first = await world.sandbox()
      const one = started(await launch.ask("start", first.request))
      await guest(first.socket, "write /data/kept yes")
      await kill(launch, first, one)
      const second = await world.sandbox({ upper: first.request["upper"], work: first.request["work"] })
      const two = started(await launch.ask("start", second.request))
      expect(await guest(second.socket, "cat /data/kept")).toBe("yes")
      expect(await guest(second.socket, "stat /data/kept")).toMatch(/^0:0 /)
      await kill(launch, second, two)
    })

    it("has a read-only root with writable workspace, home and /tmp", async () => {
      const home = {
        destination: "/home/user",
        type: "tmpfs",
        source: "tmpfs",
        options: ["nosuid", "nodev", "mode=755", "size=16m"],
      }
      const sandbox = await world.sandbox({ config: JSON.stringify(config({ readOnly: true, mounts: [home] })) })
      const start = started(await launch.ask("start", sandbox.request))
      expect(await guest(sandbox.socket, "write /data/new x")).toBe("Read-only file system")
      for (const name of ["/workspace/a", "/tmp/a", "/home/user/a"])
        expect(await guest(sandbox.socket, `write ${name} x`)).toBe("ok")
      await kill(launch, sandbox, start)
    })

    it("works without any writable layer when the targets of its binds exist", async () => {
      const top = path.join(world.root, "top")
      await mkdir(path.join(top, "run/warren"), { recursive: true })
      await mkdir(path.join(top, "workspace"), { recursive: true })
      await writeFile(path.join(top, "run/warren/init"), "")
      const sandbox = await world.sandbox({ lowers: [top, world.lower], upper: null, work: null })
      const start = started(await launch.ask("start", sandbox.request))
      expect(await guest(sandbox.socket, "write /data/new x")).toBe("Read-only file system")
      await kill(launch, sandbox, start)
    })

    it("lays a second overlay over a directory, the host's own /usr for one", async () => {
      const sandbox = await world.sandbox()
      const rw = path.join(sandbox.folder, "rw")
      for (const name of ["usr", "usr.work"]) await mkdir(path.join(rw, name))
      const overlays = [{ to: "/usr", lowers: ["/usr"], upper: path.join(rw, "usr"), work: path.join(rw, "usr.work") }]
      const start = started(await launch.ask("start", { ...sandbox.request, overlays }))
      expect(await guest(sandbox.socket, "stat /usr/bin/env")).toMatch(/^0:0 100755$/)
      expect(await guest(sandbox.socket, "unlink /usr/bin/env")).toBe("ok")
      expect(await guest(sandbox.socket, "write /usr/bin/new x")).toBe("ok")
      await kill(launch, sandbox, start)
      expect(existsSync("/usr/bin/env")).toBe(true)
      expect(existsSync("/usr/bin/new")).toBe(false)
      expect(statSync(path.join(rw, "usr/bin/new")).uid).toBe(0)
      const elsewhere = [{ to: "/usr", lowers: ["/usr"], upper: `${world.root}/a/usr`, work: `${world.root}/a/work` }]
      expect((await launch.ask("start", { ...sandbox.request, overlays: elsewhere })).fault).toMatchObject({
        errno: "EINVAL",
      })
    })

    it("makes such an overlay read-only once the binds below it are in place", async () => {
      const sandbox = await world.sandbox()
      const rw = path.join(sandbox.folder, "rw")
      for (const name of ["usr", "usr.work", "data", "data.work"]) await mkdir(path.join(rw, name))
      const over = (name: string, lowers: string[], more: object): object => ({
        to: `/${name}`,
        lowers,
        upper: path.join(rw, name),
        work: path.join(rw, `${name}.work`),
        ...more,
      })
      const overlays = [
        over("usr", ["/usr"], { readOnly: true }),
        over("data", [path.join(world.lower, "data")], { readOnly: false }),
      ]
      const binds = [
        ...(sandbox.request["binds"] as object[]),
        { from: world.init, to: "/usr/made/init" },
        { from: path.join(sandbox.folder, "workspace"), to: "/usr/made/space", readOnly: false },
      ]
      const start = started(await launch.ask("start", { ...sandbox.request, overlays, binds }))
      const ask = (line: string): Promise<string> => guest(sandbox.socket, line)
      expect(await ask("stat /usr/made/init")).toMatch(/^0:0 100/)
      for (const line of ["write /usr/new x", "write /usr/made/new x", "unlink /usr/bin/env", "mkdir /usr/bin/new"])
        expect(await ask(line), line).toBe("Read-only file system")
      for (const line of ["write /usr/made/space/new x", "write /data/new x", "write /new x"])
        expect(await ask(line), line).toBe("ok")
      await kill(launch, sandbox, start)
      expect(existsSync(path.join(rw, "usr/made/space"))).toBe(true)
      const wrong = [over("usr", ["/usr"], { readOnly: 1 })]
      expect((await launch.ask("start", { ...sandbox.request, overlays: wrong })).fault).toMatchObject({
        step: "request",
        errno: "EINVAL",
      })
    })

    it("limits what its user namespace may take", async () => {
      const sandbox = await world.sandbox({ userLimits: { max_inotify_instances: 7, max_user_namespaces: 0 } })
      const start = started(await launch.ask("start", sandbox.request))
      expect(await guest(sandbox.socket, "cat /proc/sys/user/max_inotify_instances")).toBe("7\n")
      expect(await guest(sandbox.socket, "cat /proc/sys/user/max_user_namespaces")).toBe("0\n")
      await kill(launch, sandbox, start)
    })

    it("never follows a symbolic link of the image to a bind's target", async () => {
      const evil = path.join(world.root, "evil")
      await mkdir(evil, { recursive: true })
      await symlink("/data", path.join(evil, "workspace"))
      const sandbox = await world.sandbox({ lowers: [evil, world.lower] })
      const answer = await launch.ask("start", sandbox.request)
      expect(answer.fault).toMatchObject({ step: "bind", errno: "ELOOP" })
      await launch.ask("kill", { cgroups: sandbox.cgroups })
    })

    it.each([
      ["a lower that is not there", { lowers: ["/nowhere/at/all"] }, { step: "lower", errno: "ENOENT" }],
      ["a runtime that is not there", { runtime: ["/nowhere/crun"] }, { step: "runtime", errno: "ENOENT" }],
      ["a runtime that is no program", { runtime: ["/etc/passwd"] }, { step: "runtime", errno: "EACCES" }],
      ["a relative path", { lowers: ["x"] }, { step: "request", errno: "EINVAL" }],
      ["a path with ..", { lowers: ["/tmp/../etc"] }, { step: "request", errno: "EINVAL" }],
      ["no lowers", { lowers: [] }, { step: "request", errno: "EINVAL" }],
      ["too many lowers", { lowers: Array.from({ length: 129 }, () => "/usr") }, { step: "request", errno: "EINVAL" }],
      ["the host's own users", { map: { base: 0, size: 65536 } }, { step: "request", errno: "EINVAL" }],
      [
        "a range that wraps around",
        { map: { base: 4_294_900_000, size: 131_072 } },
        { step: "request", errno: "EINVAL" },
      ],
      ["a whole cgroup hierarchy", { cgroups: ["/sys/fs/cgroup/memory"] }, { step: "request", errno: "EINVAL" }],
      ["something that is no cgroup", { cgroups: ["/etc/a/b"] }, { step: "request", errno: "EINVAL" }],
      [
        "a cgroup that is not there",
        { cgroups: ["/sys/fs/cgroup/memory/launch-none/nobody"] },
        { step: "cgroup", errno: "ENOENT" },
      ],
      ["a socket outside of the roots", { socket: "/tmp/elsewhere.sock" }, { step: "request", errno: "EINVAL" }],
      ["a socket name too long to bind", { socket: `/tmp/${"x".repeat(110)}` }, { step: "request", errno: "EINVAL" }],
      [
        "a bind source that is not there",
        { binds: [{ from: "/nowhere/x", to: "/x" }] },
        { step: "bind", errno: "ENOENT" },
      ],
      [
        "a bind of a device",
        { binds: [{ from: "/dev/null", to: "/x", idmap: false }] },
        { step: "bind", errno: "EINVAL" },
      ],
      [
        "a limit with a strange name",
        { userLimits: { "../kernel/core_pattern": 1 } },
        { step: "request", errno: "EINVAL" },
      ],
    ])("refuses %s", async (_, over, fault) => {
      const sandbox = await world.sandbox(over)
      const answer = await launch.ask("start", sandbox.request)
      expect(answer.fault).toMatchObject(fault)
      expect(await inRange(sandbox.base)).toEqual([])
    })

    it("reports what the runtime said", async () => {
      const sandbox = await world.sandbox({ config: "{}" })
      const answer = await launch.ask("start", sandbox.request)
      expect(answer.fault?.step).toBe("runtime")
      expect(answer.fault?.stderr).toContain("ociVersion")
      const loud = await world.sandbox({
        runtime: shell("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 3"),
      })
      const second = await launch.ask("start", loud.request)
      expect(second.fault?.stderr?.length).toBeLessThanOrEqual(4096)
      expect(second.fault?.stderr).toContain("line 2999")
    })

    it("does not believe a runtime whose init is not in its namespace", async () => {
      const sandbox = await world.sandbox({ runtime: shell("echo 1 > /run/pid; exit 0") })
      expect((await launch.ask("start", sandbox.request)).fault?.step).toBe("runtime")
      const other = await world.sandbox({ runtime: shell(`echo ${process.pid} > /run/pid; exit 0`) })
      expect((await launch.ask("start", other.request)).fault?.step).toBe("runtime")
    })

    it("ends a runtime that hangs, and everything it has started", async () => {
      const sandbox = await world.sandbox({
        runtime: shell("setsid sleep 1000 & sleep 1000 & sleep 1000"),
        timeoutMs: 300,
      })
      const before = Date.now()
      const answer = await launch.ask("start", sandbox.request)
      expect(answer.fault).toMatchObject({ step: "runtime", errno: "ETIMEDOUT" })
      expect(Date.now() - before).toBeLessThan(3000)
      expect(await inRange(sandbox.base)).toEqual([])
    })

    it("says when one can connect, before the runtime is done", async () => {
      const sandbox = await world.sandbox({ runtime: shell("sleep 0.2; exit 1") })
      const before = launch.events.length
      const answer = launch.ask("start", sandbox.request)
      while (!launch.events.slice(before).some(({ event }) => event === "listening")) await launch.arrival()
      expect(lstatSync(sandbox.socket).isSocket()).toBe(true)
      expect((await answer).fault?.message).toBe("the runtime ended with code 1")
    })

    it("gives the runtime libraries of its own, and init none of them", async () => {
      const libraries = await buildLibraries(path.join(world.root, "bin"))
      const sandbox = await world.sandbox(libraries ? { libraries } : {})
      const start = started(await launch.ask("start", sandbox.request))
      expect(await guest(sandbox.socket, "ping")).toBe("pong")
      expect(readFileSync(`/proc/${start.pid}/environ`, "utf8")).toBe("")
      await kill(launch, sandbox, start)
    })

    it("does without owner maps: layers look like nobody's, the upper must belong to the range", async () => {
      const wrong = await world.sandbox({ idmap: false })
      expect((await launch.ask("start", wrong.request)).fault).toMatchObject({ step: "overlay", errno: "EACCES" })
      const sandbox = await world.sandbox({ idmap: false })
      for (const part of ["rw/upper", "rw/work"])
        await chown(path.join(sandbox.folder, part), sandbox.base, sandbox.base)
      const start = started(await launch.ask("start", sandbox.request))
      expect(start.idmap).toEqual({ lower: false, upper: false })
      expect(await guest(sandbox.socket, "stat /data/root")).toMatch(/^65534:65534 /)
      expect(await guest(sandbox.socket, "write /new x")).toBe("ok")
      await kill(launch, sandbox, start)
      expect(statSync(path.join(sandbox.folder, "rw/upper/new")).uid).toBe(sandbox.base)
    })

    it("sees by itself that a file system has no owner maps", async () => {
      const place = path.join(world.root, "stacked")
      await mkdir(place)
      execFileSync("mount", ["-t", "overlay", "overlay", "-o", `lowerdir=${world.lower}:/usr/share`, place])
      try {
        const own = new Launch(program, [world.root])
        const sandbox = await world.sandbox({ lowers: [place] })
        const start = started(await own.ask("start", sandbox.request))
        expect(start.idmap).toEqual({ lower: false, upper: true })
        expect((await kill(own, sandbox, start)).ok?.["killed"]).toBeGreaterThan(0)
        await own.end()
      } finally {
        execFileSync("umount", [place])
      }
    })

    it("starts 32 at once", async () => {
      const sandboxes = await Promise.all(Array.from({ length: 32 }, () => world.sandbox()))
      const starts = await Promise.all(
        sandboxes.map(async (sandbox) => started(await launch.ask("start", sandbox.request))),
      )
      expect(new Set(starts.map(({ pid }) => pid)).size).toBe(32)
      const pongs = await Promise.all(sandboxes.map(({ socket }) => guest(socket, "ping")))
      expect(pongs.every((pong) => pong === "pong")).toBe(true)
      const ends = await Promise.all(
        sandboxes.map((sandbox, index) =>
          kill(launch, sandbox, starts[index] ?? { pid: 0, startTicks: "", idmap: { lower: true, upper: true } }),
        ),
      )
      expect(ends.every(({ ok }) => Number(ok?.["killed"]) > 0)).toBe(true)
      expect(starts.some(({ pid }) => alive(pid))).toBe(false)
    })
  })

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
