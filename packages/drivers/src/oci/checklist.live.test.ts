import { createHash, randomUUID } from "node:crypto"
import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs"
import { rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { canSnapshot, type Sandbox } from "../driver.ts"
import { exec, Execution } from "../init/exec.ts"
import { Files } from "../init/files.ts"
import { Shell } from "../init/shell.ts"
import type { Image, SandboxId } from "../sandbox-spec.ts"
import type { StartRequest } from "./launcher.ts"
import { Fixture, never, sh, text } from "./testing/fixture.ts"
import { footprint, initPid, launcherPids, pidsIn } from "./testing/invariants.ts"
import { programs } from "./testing/subject.ts"

const own = process.getuid?.() ?? 0
const kinds = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"]
const pty = { cols: 80, rows: 24 }
/** PTRACE_TRACEME, as perl calls it by its number. */
const traceMe = `syscall(${process.arch === "arm64" ? 117 : 101}, 0, 0, 0, 0)`
const ticksPerSecond = 100

/**
 * Rows of the security checklist that no other test has whole. Run by root, and by `rootless.live.test.ts` as an ordinary user: what is
 * promised does not depend on who runs it.
 */
describe("the checklist", () => {
  let spoil = (request: StartRequest): StartRequest => request
  const fixture = new Fixture({ spoil: (request) => spoil(request) })
  let folder = ""
  let sandbox: Sandbox
  beforeAll(async () => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "warren-list-")))
    chmodSync(folder, 0o755)
    sandbox = await fixture.start()
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const alive = async (one = sandbox): Promise<void> => expect(await text(one, "echo alive")).toBe("alive\n")

  it("shares no namespace and no id with the host or with each other (ESC-01, ESC-02)", async () => {
    await using second = await fixture.use({ profile: "strict" })
    await using third = await fixture.use()
    const postures = await Promise.all([sandbox, second, third].map((one) => one.posture()))
    for (const kind of kinds) {
      const ids = [readlinkSync(`/proc/self/ns/${kind}`), ...postures.map(({ namespaces }) => namespaces[kind]?.id)]
      expect(new Set(ids).size, `${kind}: ${ids.join(" ")}`).toBe(1 + postures.length)
    }
    for (const map of ["uidMap", "gidMap"] as const) {
      const taken = [
        0,
        own,
        ...postures.flatMap((posture) => posture[map].flatMap(({ outside, count }) => idsOf(outside, count))),
      ]
      expect(new Set(taken).size, map).toBe(new Set([0, own]).size + 3 * 65_536)
    }
  })

  it("has a filter on every thread of every process, by whatever way it came in (ESC-06)", async () => {
    const changes = await new Files(sandbox).watch("/tmp")
    const watching = changes[Symbol.asyncIterator]()
    const next = watching.next()
    await using _ = await Execution.start(sandbox, {
      argv: ["sh", "-c", "node -e 'setInterval(()=>0,1e6)' & sleep 1000"],
    })
    await using terminal = await Execution.start(sandbox, { argv: ["sh", "-c", "echo up; sleep 1000"], pty })
    await terminal.output().next()
    const shell = await Shell.open(sandbox)
    await shell.run("sleep 1000 &")
    const look = "cat /proc/[0-9]*/task/[0-9]*/status"
    await expect.poll(() => text(sandbox, look, { user: "root" })).toMatch(/^Name:\tnode$/m)
    const statuses = (await text(sandbox, look, { user: "root" })).split(/^(?=Name:)/m)
    // init, two commands, a terminal, a shell, node with its threads, and whoever looks.
    expect(statuses.length).toBeGreaterThan(10)
    for (const status of statuses) {
      expect(status).toMatch(/^Seccomp:\t2$/m)
      expect(status).toMatch(/^NoNewPrivs:\t1$/m)
      expect(status).toMatch(/^CapInh:\t0+$/m)
      expect(status).toMatch(/^CapAmb:\t0+$/m)
    }
    await exec(sandbox, { argv: ["touch", "/tmp/seen"] })
    await next
    await watching.return?.()
  })

  it("lets nobody write to the programs that start it, while they start things (ESC-25)", async () => {
    const watched = [programs.init, programs.launch, execFileSync("which", ["crun"]).toString().trim()]
    const sums = (): string[] => watched.map((path) => createHash("sha256").update(readFileSync(path)).digest("hex"))
    const before = sums()
    // Whatever is started by whoever, its program is opened to be written the moment it can be seen.
    const thief =
      'for my $n (1..100000) { for (glob "/proc/[0-9]*/exe") { if (open my $f, "+<", $_) { my $at = readlink $_; print "$at\\n" if $at =~ /crun|warren|memfd/ } } }'
    await sh(sandbox, "printf '#!/proc/self/exe\\n' > /workspace/self; chmod +x /workspace/self")
    for (const user of ["user", "root"]) {
      await using stealing = await Execution.start(sandbox, { argv: ["perl", "-e", thief], user })
      for (let round = 0; round < 50; round++)
        await exec(sandbox, { argv: ["/workspace/self"], user }).catch((failure: unknown) =>
          expect(failure).toBeInstanceOf(Fault),
        )
      await fixture.destroy((await fixture.start()).id)
      stealing.control({ op: "signal", name: "SIGKILL" })
      for await (const said of stealing.output()) expect(said.bytes.toString()).toBe("")
    }
    expect(sums()).toEqual(before)
    await alive()
  })

  it("begins a command in no folder of the host, whatever descriptor is named (ESC-26)", async () => {
    await sh(sandbox, "for n in $(seq 0 40); do ln -sfn /proc/self/fd/$n /workspace/fd-$n; done")
    const folders = [...Array(41).keys()].flatMap((n) => [
      `/proc/self/fd/${n}`,
      `/proc/1/fd/${n}`,
      `/workspace/fd-${n}`,
    ])
    const shown = (at: string): Promise<string> =>
      text(sandbox, "readlink /proc/self/cwd; ls -a ../../../../../..; cat ../../../../../../../etc/hostname", {
        cwd: at,
      }).catch((failure: unknown) => (failure instanceof Fault ? failure.code : String(failure)))
    const inside = await shown("/")
    for (const at of [...folders, "/proc/1/root", "/proc/1/cwd"]) {
      const said = await shown(at)
      if (said.includes("\n"))
        expect(said.split("\n").slice(1).join("\n"), at).toBe(inside.split("\n").slice(1).join("\n"))
      else expect(["not_found", "forbidden", "invalid"], at).toContain(said)
    }
  })

  describe("an image in which something is a link (ESC-27, ESC-28)", () => {
    const names = ["dev", "proc", "sys", "tmp", "run", "etc", "workspace", "home", "etc/resolv.conf", "run/warren"]
    const shapes: readonly [string, (target: string) => string][] = [
      ["to a folder of the host", (target) => target],
      ["up and out", (target) => `${"../".repeat(12)}${target.slice(1)}`],
    ]
    const layered = (name: string, target: string): Image => {
      const at = mkdtempSync(join(folder, "layer-"))
      chmodSync(at, 0o755)
      mkdirSync(join(at, name, ".."), { recursive: true })
      symlinkSync(target, join(at, name))
      return { ...fixture.image, layers: [at, ...fixture.image.layers] }
    }

    it.each(names.flatMap((name) => shapes.map(([how, to]) => [name, how, to] as const)))(
      "/%s %s: nothing is made there, and what is started is inside",
      async (name, _, to) => {
        const target = mkdtempSync(join(folder, "trap-"))
        // So open that only a driver that does not go there leaves it as it is.
        chmodSync(target, 0o777)
        const spec = fixture.spec({ image: layered(name, to(target)) })
        try {
          await fixture.driver.create(spec, never)
          const started = await fixture.driver.start(spec.id, never)
          expect(await text(started, "echo mine > /workspace/mine; cat /workspace/mine; id -u")).toBe("mine\n1000\n")
        } catch (failure) {
          expect(failure).toMatchObject({ code: expect.stringMatching(/^(invalid|unavailable|not_found)$/) as string })
        } finally {
          await fixture.destroy(spec.id)
        }
        expect(readdirSync(target)).toEqual([])
      },
    )
  })

  it("changes no device of the host, whatever is done to its own (ESC-30)", async () => {
    const { devices } = footprint(fixture.root)
    expect(devices.length).toBeGreaterThan(5)
    const all = "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx"
    const attempts = `chmod 000 ${all}; chown 1000:1000 ${all}; chmod 1666 /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2; chown 0 /proc/self/fd/[012]; true`
    for (const user of ["user", "root"]) {
      await exec(sandbox, { argv: ["sh", "-c", attempts], user, pty })
      await sh(sandbox, attempts, { user })
      await sh(sandbox, `(${attempts}) < /dev/null > /dev/null 2> /dev/null`, { user })
    }
    expect(footprint(fixture.root).devices).toEqual(devices)
    await sh(sandbox, `chmod 666 ${all}`, { user: "root" })
    await alive()
  })

  it("is not fooled by who asks to be traced: it ends when it ends, and nobody spins (ESC-32, ESC-33)", async () => {
    await using one = await fixture.use()
    const perl = (rest: string): string[] => ["perl", "-e", `$| = 1; ${traceMe}; ${rest}`]
    const watched = [initPid(fixture.root, one.id), ...launcherPids(fixture.root)]
    const ticks = (): number => watched.reduce((sum, pid) => sum + ticksOf(pid), 0)
    await using held = await Execution.start(one, {
      argv: perl("print qq(up\\n); kill 19, $$; print qq(on\\n); sleep 1000"),
    })
    expect((await held.output().next()).value?.bytes.toString()).toBe("up\n")
    const [began, before] = [performance.now(), ticks()]
    for (let round = 0; round < 30; round++) await alive(one)
    const seconds = (performance.now() - began) / 1_000
    // Who waits in a loop has all of that time; thirty commands cost a small part of it.
    expect(ticks() - before).toBeLessThan(Math.max(20, (seconds * ticksPerSecond) / 2))
    expect((await text(one, "cat /proc/[0-9]*/comm")).split("\n")).toContain("perl")
    const over = { value: false }
    const ended = held.ended().finally(() => (over.value = true))
    await alive(one)
    expect(over.value).toBe(false)
    held.control({ op: "signal", name: "SIGKILL" })
    expect(await ended).toMatchObject({ signal: "SIGKILL" })
    expect(await exec(one, { argv: perl("exec q(true)") })).toMatchObject({ code: 0, reason: "exit" })
    await using _ = await Execution.start(one, { argv: perl("while (1) { kill 19, $$ }") })
    await fixture.driver.stop(one.id, 50)
    expect(pidsIn(fixture.root, one.id)).toEqual([])
  })

  it("takes no id that is none, before anything is made of it (ESC-36)", async () => {
    const good = fixture.spec().id
    const wrong = [
      ...["", "../x", "a/b", "-h", "--root=/", ".", "..", "a\0b", "sbx_", "ünïcode", "a b", "a\nb", "x".repeat(300)],
      ...[
        `${good}/..`,
        `${good}\n`,
        `-${good}`,
        `${good}x`,
        good.toUpperCase(),
        good.replace("sbx", "ses"),
        `../${good}`,
      ],
    ] as SandboxId[]
    await fixture.leavesNothing(async () => {
      for (const id of wrong) {
        const refused = expect.objectContaining({ code: "invalid" }) as Error
        await expect(fixture.driver.create({ ...fixture.spec(), id }, never), JSON.stringify(id)).rejects.toEqual(
          refused,
        )
        for (const act of ["start", "stop", "destroy", "exists"] as const) {
          const answer = await fixture.driver[act](id, never as never).catch(
            (failure: unknown) => Fault.from(failure).code,
          )
          expect(["invalid", "not_found", false], `${act} ${JSON.stringify(id)}`).toContain(answer)
        }
      }
    })
    await alive()
  })

  it("brings nothing to the host in its files: no owner of the host's, no device, no power (ESC-41)", async () => {
    const plant = `cd /workspace; cp /bin/sh su; chmod 6755 su; mkfifo fifo; mknod null c 1 3; mknod disk b 8 0; mknod white c 0 0
      setcap cap_sys_admin+ep su; ln -s /etc/shadow link; chown 0:0 su; ls -A`
    for (const user of ["user", "root"]) await sh(sandbox, plant, { user })
    // As the sandbox's own init sees it, which is as it is on the disk: names of kinds and owners out here.
    const at = `/proc/${initPid(fixture.root, sandbox.id)}/root/workspace`
    const seen =
      own === 0 ? execFileSync("find", [at, "-printf", "%f %y %U\\n"]).toString() : await fromOutside(sandbox)
    expect(seen).toMatch(/^su f /m)
    for (const line of seen.trim().split("\n")) {
      expect(line, line).not.toMatch(/ [bc] /)
      expect(["0", String(own)], line).not.toContain(line.split(" ").at(-1))
    }
  })

  /** An ordinary user may not even look; what is inside is theirs by the map alone. */
  async function fromOutside(one: Sandbox): Promise<string> {
    const { uidMap } = await one.posture()
    const base = uidMap[0]?.outside ?? 0
    const found = await text(one, "find /workspace -printf '%f %y %U\\n'", { user: "root" })
    return found.replaceAll(/(\d+)$/gm, (uid) => String(base + Number(uid)))
  }

  it("keeps to its share of the processors, however many want all of them (RES-14)", async () => {
    await using hog = await fixture.use({ limits: { cpus: 0.1 } })
    const begun = performance.now()
    const before = (await hog.stats()).cpuUs
    await using _ = await Execution.start(hog, {
      argv: ["sh", "-c", "for n in 1 2 3 4 5 6 7 8; do while :; do :; done & done; wait"],
    })
    await expect.poll(async () => (await hog.stats()).cpuUs - before, { timeout: 30_000 }).toBeGreaterThan(200_000)
    await alive()
    const usedUs = (await hog.stats()).cpuUs - before
    // A period may be begun and not over, on each processor.
    expect(usedUs).toBeLessThan((performance.now() - begun) * 100 + 60_000)
    await fixture.driver.stop(hog.id, 50)
  })

  it("leaves no core of what crashes (RES-18)", async () => {
    const pattern = readFileSync("/proc/sys/kernel/core_pattern", "utf8")
    const crash =
      "ulimit -H -c; ulimit -c unlimited 2>/dev/null; for s in SEGV ABRT BUS QUIT FPE; do (cd /workspace; sh -c 'kill -'$s' $$'); done; find / -xdev -name 'core*' -type f -newer /proc/1/stat 2>/dev/null | grep -E '/core(\\.[0-9]+)?$'"
    for (const user of ["user", "root"]) expect(await text(sandbox, crash, { user }), user).toBe("0\n")
    expect(readFileSync("/proc/sys/kernel/core_pattern", "utf8")).toBe(pattern)
  })

  it.each([
    ["ignores every signal it can", "trap '' TERM INT HUP QUIT USR1 USR2; echo up; while :; do sleep 1000; done"],
    ["has stopped itself", "echo up; kill -STOP $$"],
    [
      "is a daemon",
      "echo up; setsid setsid sh -c '(sleep 10001 &) & exec sleep 10002' </dev/null >/dev/null 2>&1 & exit",
    ],
    ["forks twice without end", "echo up; f() { (sleep 0.01; f) & }; f; f; exit"],
    ["is root's, and stopped", "sudo sh -c 'echo up; kill -STOP $$'"],
    [
      "is traced by somebody who sleeps",
      `exec perl -e '$|=1; if (fork) { print qq(up\\n); sleep 1000 } ${traceMe}; kill 19, $$'`,
    ],
  ])("ends with its sandbox although it %s (RES-19, FT-37)", async (_, command) => {
    await using one = await fixture.use()
    await using running = await Execution.start(one, { argv: ["sh", "-c", command] })
    expect((await running.output().next()).value?.bytes.toString()).toBe("up\n")
    await fixture.driver.stop(one.id, 50)
    await one.ended
    expect(pidsIn(fixture.root, one.id)).toEqual([])
  })

  it("takes links as links when it is frozen, and nothing they lead to (FS-11)", async () => {
    const { driver } = fixture
    if (!canSnapshot(driver)) throw new Error("this driver takes no snapshots")
    const secret = randomUUID()
    const outside = join(folder, "outside")
    mkdirSync(outside)
    writeFileSync(join(outside, "file"), secret, { mode: 0o644 })
    const origin = await fixture.start()
    const links = {
      whole: outside,
      one: join(outside, "file"),
      up: `${"../".repeat(12)}${outside.slice(1)}`,
      root: "/proc/1/root",
    }
    for (const [name, to] of Object.entries(links)) await exec(origin, { argv: ["ln", "-s", to, `/workspace/${name}`] })
    await sh(origin, "mkfifo /workspace/fifo; ln /workspace/fifo /workspace/same")
    await driver.stop(origin.id)
    const from = newId("snp")
    await driver.snapshot(origin.id, from)
    const clone = await fixture.start({ from })
    const found = await text(
      clone,
      "cd /workspace; for n in whole one up root; do readlink $n; done; cat one up/file whole/file 2>&1; stat -c '%F %h' fifo",
    )
    expect(found).toContain(`${Object.values(links).join("\n")}\n`)
    expect(found).toMatch(/fifo 2\n$/)
    expect(found).not.toContain(secret)
    expect(await text(clone, `grep -rslF ${secret} /workspace /home /tmp`, { user: "root" })).toBe("")
    for (const { id } of [origin, clone]) await fixture.destroy(id)
    await driver.removeSnapshot(from)
  })

  it("has nothing of who had its ids and its name before (SEC-18)", async () => {
    const word = randomUUID()
    const places = "/workspace /home/user /tmp /var/tmp /dev/shm"
    const spec = fixture.spec()
    const live = async (): Promise<Sandbox> => {
      await fixture.driver.create(spec, never)
      return fixture.driver.start(spec.id, never)
    }
    const before = await live()
    await sh(
      before,
      `for d in ${places}; do echo $W > $d/left; done; perl -e 'shmget(1, 4096, 01666); msgget(1, 01666); semget(1, 1, 01666)'; hostname`,
      { env: { W: word } },
    )
    await sh(before, "echo $W > /etc/left; echo $W > /root/left", { user: "root", env: { W: word } })
    expect(await text(before, `cat ${places.split(" ").join("/left ")}/left`)).toContain(word)
    await fixture.driver.destroy(spec.id)
    const after = await live()
    const look = `ls -d ${places.split(" ").join("/left ")}/left /etc/left /root/left 2>/dev/null; tail -qn +2 /proc/sysvipc/*; grep -rslaF "$W" ${places} /root /etc /run`
    expect((await sh(after, look, { user: "root", env: { W: word } })).stdout.toString()).toBe("")
    await fixture.destroy(spec.id)
  })

  it.each([
    ["sleeps", ["/bin/sleep", "1000"]],
    ["spins and ignores signals", ["/bin/sh", "-c", "trap '' TERM INT; while :; do :; done"]],
    ["leaves others behind", ["/bin/sh", "-c", "setsid sleep 1000 & setsid setsid sleep 1001 & wait"]],
  ])("does not wait for a runtime that %s, and leaves nothing of it (FT-21)", async (_, runtime) => {
    await fixture.leavesNothing(async () => {
      const id = await fixture.create()
      spoil = (request) => ({ ...request, runtime, timeoutMs: 300 })
      const failure: unknown = await fixture.driver.start(id, never).catch((thrown: unknown) => thrown)
      spoil = (request) => request
      expect(failure).toBeInstanceOf(Fault)
      expect(pidsIn(fixture.root, id)).toEqual([])
      await alive(await fixture.driver.start(id, never))
      await fixture.destroy(id)
    })
  })

  it("leaves alone what bears no name of ours (FT-30)", async () => {
    const foreign = [join(fixture.root, "volume", "theirs"), join(fixture.root, "theirs")]
    for (const path of foreign) {
      mkdirSync(path)
      writeFileSync(join(path, "kept"), "theirs")
    }
    await fixture.close()
    await fixture.open()
    for await (const _ of fixture.driver.adopt(never)) continue
    await fixture.destroy((await fixture.start()).id)
    for (const path of foreign) {
      expect(readFileSync(join(path, "kept"), "utf8")).toBe("theirs")
      rmSync(path, { recursive: true })
    }
  })
})

function idsOf(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, more) => first + more)
}

/** Of the processor, by itself and in the kernel. */
function ticksOf(pid: number): number {
  const [, after = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")
  const fields = after.split(" ")
  return Number(fields[11]) + Number(fields[12])
}
