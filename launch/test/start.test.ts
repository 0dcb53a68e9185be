import { execFileSync } from "node:child_process"
import { existsSync, lstatSync, readFileSync, statSync } from "node:fs"
import { chown, mkdir, readdir, symlink, writeFile } from "node:fs/promises"
import path from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { buildLibraries } from "../build.ts"
import { guest, Launch } from "./client.ts"
import { config } from "./oci.ts"
import { alive, freeze, inRange, kill, shell, started, World, Ground } from "./world.ts"

const able = process.getuid?.() === 0 && existsSync("/usr/bin/crun")

describe.runIf(able)("warren-launch: start", () => {
  const ground = new Ground()
  let world: World
  let program: string
  let launch: Launch
  beforeAll(() => void ({ world, program, launch } = ground))

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
    expect(readFileSync(`/proc/${start.pid}/cgroup`, "utf8")).toContain(`/${path.basename(world.root)}/${sandbox.name}`)
    expect(world.mounts()).toBe(ground.mounts)
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

  it("ends a runtime that somebody froze in the middle of it", async () => {
    const sandbox = await world.sandbox({ runtime: shell("sleep 1000"), timeoutMs: 1000 })
    const asked = launch.ask("start", sandbox.request)
    const members = (): string => readFileSync(path.join(sandbox.cgroups[0] ?? "", "cgroup.procs"), "utf8")
    await expect.poll(members, { interval: 5 }).not.toBe("")
    await freeze(sandbox)
    expect((await asked).fault).toMatchObject({ step: "runtime", errno: "ETIMEDOUT" })
    expect(members()).toBe("")
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
    for (const part of ["rw/upper", "rw/work"]) await chown(path.join(sandbox.folder, part), sandbox.base, sandbox.base)
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
