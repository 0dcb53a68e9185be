import { once } from "node:events"
import { readdir, readFile } from "node:fs/promises"
import { describe, expect, it } from "vitest"
import { encode, Init, isRoot, type Json, Wire } from "./client.ts"

const caps = [
  "setuid",
  "setgid",
  "kill",
  "setpcap",
  "chown",
  "dac_override",
  "fowner",
  "fsetid",
  "setfcap",
  "sys_chroot",
  "net_bind_service",
]
const plus = caps.map((cap) => `+${cap}`).join(",")
/** As in a sandbox: PID 1 of a pid namespace, uid 65533, eleven capabilities. */
const sandbox = [
  ...[
    "unshare",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "setpriv",
    "--reuid=65533",
    "--regid=65533",
    "--clear-groups",
  ],
  ...[`--inh-caps=-all,${plus}`, `--ambient-caps=-all,${plus}`, `--bounding-set=-all,${plus}`],
]
const startSandbox = (before: readonly string[] = []): Promise<Init> => Init.start({ prefix: [...before, ...sandbox] })

describe("a confused host", () => {
  const head = (length: number, ...rest: number[]): Buffer => {
    const frame = Buffer.alloc(4)
    frame.writeUInt32BE(length)
    return Buffer.concat([frame, Buffer.from(rest)])
  }
  const cases: [string, Buffer, string][] = [
    ["an empty frame", head(0), "invalid"],
    ["a frame of 4 GiB", head(0xffffffff), "limit"],
    ["a frame one byte too long", head((1 << 20) + 1, 0x7b), "limit"],
    ["a stream frame one byte too long", head((256 << 10) + 1, 1), "limit"],
    ["an unknown tag", head(2, 9, 9), "invalid"],
    ["tag 0", head(1, 0), "invalid"],
    ["10 MB of '['", Buffer.concat([head(1 << 20), Buffer.alloc(10_000_000, "[")]), "invalid"],
    ["depth 17", encode(`{"op":${"[".repeat(16)}${"]".repeat(16)}}`), "invalid"],
    ["a megabyte of depth", encode(`{"op":${"[".repeat((1 << 20) - 6)}`), "invalid"],
    ["half a string", encode('{"op":"'), "invalid"],
    ["not UTF-8", encode(Buffer.from('{"op":"\xff"}', "latin1")), "invalid"],
    ["two values", encode('{"op":"hello"} {}'), "invalid"],
    ["no op", encode("{}"), "invalid"],
    ["an op that is no string", encode('{"op":{}}'), "invalid"],
    ["an unknown op", encode('{"op":"rm -rf"}'), "unsupported"],
    ["__proto__", encode('{"__proto__":{"op":"hello"}}'), "invalid"],
    ["stdin first", encode(Buffer.from([1, 65])), "invalid"],
  ]

  it("gets one fault each, and init lives", async () => {
    await using init = await Init.start()
    for (const [name, bytes, code] of cases) {
      const { events } = await new Wire(init.socket).raw(bytes).all()
      expect([name, events.map((event) => event["ev"]), events[0]?.["code"]]).toEqual([name, ["fault"], code])
    }
    expect((await init.call({ op: "hello", unknown: [1, { a: null }] })).last).toMatchObject({ ev: "ok" })
    const twice = await new Wire(init.socket).raw(encode('{"op":"hello","op":"stop"}')).all()
    expect(twice.last).toMatchObject({ ev: "ok", version: 1 })
  })

  it("takes frames at their limits", async () => {
    await using init = await Init.start()
    const text = '{"op":"hello","x":""}'
    const full = text.replace('""', `"${"x".repeat((1 << 20) - text.length)}"`)
    using wire = new Wire(init.socket)
    expect((await wire.raw(encode(full)).all()).last).toMatchObject({ ev: "ok" })
    using cat = init.open({ op: "spawn", argv: ["wc", "-c"], stdin: true })
    cat.bytes(Buffer.alloc((256 << 10) - 1)).send({ op: "eof" })
    expect((await cat.all()).out.trim()).toBe(String((256 << 10) - 1))
  })

  it("may send byte by byte, or stop in the middle", async () => {
    await using init = await Init.start()
    using slow = new Wire(init.socket)
    for (const byte of encode('{"op":"hello"}')) {
      slow.raw(Buffer.from([byte]))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect((await slow.all()).last).toMatchObject({ ev: "ok" })
    for (let n = 0; n < 18; n++) {
      const half = new Wire(init.socket).raw(encode('{"op":"hello"}').subarray(0, n))
      half.socket.end()
      expect(await half.next()).toBeUndefined()
      half.socket.destroy()
    }
    expect((await init.call({ op: "hello" })).last).toMatchObject({ ev: "ok" })
  })

  it("ends a running operation with a bad frame", async () => {
    await using init = await Init.start()
    using wire = init.open({ op: "spawn", argv: ["sleep", "1000"] })
    await wire.event()
    wire.raw(head(0))
    expect((await wire.all()).last).toMatchObject({ ev: "fault", code: "invalid" })
    await init.settle(
      () => init.call({ op: "ps" }),
      (result) => (result.last["processes"] as Json[]).length === 0,
    )
  })

  it("has 512 connections, and a fault for the next", async () => {
    await using init = await Init.start()
    const wires: Wire[] = []
    for (let i = 0; i < 512; i++) {
      const wire = init.open({ op: "hold" })
      expect(await wire.event()).toEqual({ ev: "ok" })
      wires.push(wire)
    }
    expect((await new Wire(init.socket).all()).last).toMatchObject({ ev: "fault", code: "limit" })
    for (const wire of wires) wire.socket.destroy()
    await init.settle(
      () => init.call({ op: "hello" }),
      (result) => result.last["ev"] === "ok",
    )
  })

  it.skipIf(!isRoot)("leaves no descriptor and little memory behind (needs root to look)", async () => {
    await using init = await Init.start()
    const pid = init.child.pid ?? 0
    const count = async (): Promise<number> => (await readdir(`/proc/${pid}/fd`)).length
    const anonymous = async (): Promise<number> =>
      Number(/Anonymous: +(\d+)/.exec(await readFile(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1])
    const before = await count()
    expect(await anonymous()).toBeLessThan(100)
    for (let i = 0; i < 20; i++) {
      await init.sh("head -c 300000 /dev/zero")
      const gone = init.open({ op: "spawn", argv: ["yes"] })
      await gone.event()
      gone.socket.destroy()
      await init.call({ op: "file.stat", path: "/" })
      const { last } = await init.call({ op: "shell.open" })
      await init.call({ op: "shell.run", shell: last["shell"], command: "seq 100000" })
      await init.call({ op: "shell.close", shell: last["shell"] })
    }
    await init.settle(count, (now) => now <= before)
    expect(await anonymous()).toBeLessThan(300)
  })
})

describe("processes inside", () => {
  it("10,000 orphans are reaped", async () => {
    await using init = await Init.start()
    // Each batch is a parent that never waits and then ends: init inherits 2,500 zombies at once.
    const batch = "perl -e 'for (1..2500) { my $p = fork; exit 0 if defined $p && !$p; $n++ if $p } print $n, qq(\\n)'"
    let made = 0
    for (let i = 0; i < 4; i++) made += Number((await init.sh(batch)).out)
    expect(made).toBe(10_000)
    await init.settle(
      () => init.call({ op: "usage" }),
      (result) => Number(result.last["zombiesReaped"]) >= made,
    )
    expect(await readFile(`/proc/${init.child.pid}/task/${init.child.pid}/children`, "utf8")).toBe("")
  })

  it("cannot hold init by making it their tracer", async () => {
    await using init = await Init.start()
    const traced = (rest: string): string =>
      `exec perl -e 'syscall(${process.arch === "arm64" ? 117 : 101}, 0, 0, 0, 0); ${rest}'`
    expect((await init.sh(traced("kill 10, $$; sleep 1000"))).last).toMatchObject({
      signal: "SIGUSR1",
      reason: "signal",
    })
    expect((await init.sh(traced("exec q(true)"))).last).toMatchObject({ code: 0, reason: "exit" })
    const stopper = await init.sh(traced("while (1) { syscall(101, 0, 0, 0, 0); kill 19, $$ }"), { timeoutMs: 200 })
    expect(stopper.last).toMatchObject({ reason: "timeout", signal: "SIGKILL" })
  })

  it("are 1024 at once, and a fault for the next", async () => {
    await using init = await Init.start()
    for (let i = 0; i < 1024; i++)
      expect((await init.call({ op: "spawn", argv: ["sleep", "1000"], detached: true })).last).toMatchObject({
        ev: "started",
      })
    expect((await init.call({ op: "spawn", argv: ["true"] })).last).toMatchObject({ ev: "fault", code: "limit" })
  })
})

describe("stop", () => {
  it("sends TERM, waits, kills, and ends with 0", async () => {
    const init = await Init.start()
    using polite = init.open({
      op: "spawn",
      argv: ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done"],
    })
    using deaf = init.open({ op: "spawn", argv: ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.02; done"] })
    await polite.until("up")
    await deaf.until("up")
    const closed = once(init.child, "close")
    expect((await init.call({ op: "stop", graceMs: 300 })).last).toEqual({ ev: "ok" })
    const last = await polite.all()
    expect(last.out).toBe("bye\n")
    expect(last.last).toMatchObject({ ev: "exit", code: 0, reason: "cancelled" })
    expect((await closed)[0]).toBe(0)
    await init[Symbol.asyncDispose]()
  })

  it("also on SIGTERM", async () => {
    const init = await Init.start()
    await init.sh("sleep 1000", { detached: true })
    const closed = once(init.child, "close")
    init.child.kill("SIGTERM")
    expect((await closed)[0]).toBe(0)
    await init[Symbol.asyncDispose]()
  })
})

describe.skipIf(!isRoot)("as PID 1 of a namespace, uid 65533 (needs root)", () => {
  it("starts users with nothing, root with its eleven, and itself for nobody", async () => {
    await using init = await startSandbox()
    expect((await init.call({ op: "hello" })).last).toMatchObject({ pid: 1 })
    const user = await init.sh("id -u; grep ^Cap /proc/self/status; cat /proc/self/oom_score_adj")
    expect(user.out).toMatch(/^1000\n(Cap...:\t0{16}\n){5}500\n$/)
    const root = await init.sh(
      "id -u; grep -E '^Cap(Prm|Eff|Bnd)' /proc/self/status; chown 5:5 $HOME/.. 2>/dev/null; true",
      { user: "root" },
    )
    expect(root.out).toMatch(/^0\n(Cap...:\t00000000800405fb\n){3}$/)
    expect((await init.sh("id", { user: "65533" })).last).toMatchObject({ ev: "fault", code: "forbidden" })
    expect((await init.sh("grep -E '^(Cap(Eff|Inh|Amb)|NoNew)' /proc/1/status")).out).toMatch(
      /^CapInh:\t0{16}\nCapEff:\t0{16}\nCapAmb:\t0{16}\nNoNewPrivs:\t1\n$/,
    )
  })

  it("gives terminals, shells and files to the user", async () => {
    await using init = await startSandbox()
    expect(
      (await init.call({ op: "spawn", argv: ["sh", "-c", 'stat -c %u "$(tty)"'], pty: { cols: 80, rows: 24 } })).out,
    ).toBe("1000\r\n")
    const { last } = await init.call({ op: "shell.open" })
    const run = (command: string, more: Json = {}): ReturnType<Init["call"]> =>
      init.call({ op: "shell.run", shell: last["shell"], command, ...more })
    expect((await run("id -u; export A=1; sleep 500 &")).out).toBe("1000\n")
    expect((await run("(setsid sleep 501 &); sleep 500", { timeoutMs: 100 })).last).toMatchObject({
      reason: "timeout",
      restarted: false,
    })
    expect((await run("echo $A; jobs | wc -l; ps -eo args= | grep -c '^sleep 501'")).out).toBe("1\n1\n0\n")
    using wire = init.open({ op: "file.write", path: `${init.workspace}/f` })
    await wire.bytes("x").send({ op: "eof" }).all()
    expect((await init.call({ op: "file.stat", path: `${init.workspace}/f` })).last["entry"]).toMatchObject({
      uid: 1000,
      gid: 1000,
    })
  })

  it("cannot be signalled, traced, read or stopped from inside, even by root", async () => {
    await using init = await startSandbox()
    for (const user of ["user", "root"]) {
      const attack =
        "for s in TERM KILL STOP INT HUP SEGV CHLD USR1; do kill -$s 1; done; cat /proc/1/environ /proc/1/maps /proc/1/mem /proc/1/fd/*; readlink /proc/1/fd/*; true"
      const { out } = await init.sh(attack, { user })
      expect(out).toBe("")
    }
    await init.sh("kill -9 -1", { user: "root" })
    expect((await init.call({ op: "hello" })).last).toMatchObject({ ev: "ok", pid: 1 })
  })

  it("a fork bomb is ended by its timeout", async () => {
    await using init = await startSandbox(["prlimit", "--nproc=300"])
    const { last } = await init.sh("exec perl -e '1 while defined fork || 1'", { timeoutMs: 300, user: "4321" })
    expect(last).toMatchObject({ reason: "timeout" })
    await init.settle(
      () => init.sh("ps -o pid= -u 4321 | wc -l", { user: "1000" }),
      (result) => result.out.trim() === "0",
    )
  })

  it("says limit when there is no process to be had", async () => {
    await using init = await startSandbox(["prlimit", "--nproc=1"])
    const requests = [
      { op: "spawn", argv: ["true"] },
      { op: "file.stat", path: "/" },
      { op: "shell.open" },
      { op: "connect", port: 1 },
    ]
    for (const request of requests)
      expect((await init.call(request)).last).toMatchObject({ ev: "fault", code: "limit", errno: 11 })
    expect((await init.call({ op: "hello" })).last).toMatchObject({ ev: "ok" })
  })

  it("takes everything with it", async () => {
    const init = await startSandbox()
    const { last } = await init.sh("exec setsid sleep 1000", { detached: true })
    expect(last).toMatchObject({ ev: "started" })
    const closed = once(init.child, "close")
    await init.call({ op: "stop", graceMs: 0 })
    expect((await closed)[0]).toBe(0)
    await init[Symbol.asyncDispose]()
  })
})
