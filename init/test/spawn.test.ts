import { readdir, readFile, readlink } from "node:fs/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { encode, gid, Init, isRoot, uid } from "./client.ts"

let init: Init
beforeAll(async () => void (init = await Init.start()))
afterAll(() => init[Symbol.asyncDispose]())

describe("hello, hold, usage", () => {
  it("says who it is", async () => {
    const { last } = await init.call({ op: "hello" })
    expect(last).toMatchObject({
      ev: "ok",
      version: 1,
      profile: "dev",
      abilities: ["pty", "shell", "watch", "connect", "sudo"],
    })
    expect(last["build"]).toMatch(/^[0-9a-f]{16}$/)
  })

  it("holds a connection until it dies", async () => {
    await using other = await Init.start()
    using hold = other.open({ op: "hold" })
    expect(await hold.event()).toEqual({ ev: "ok" })
    await other.call({ op: "stop", graceMs: 0 })
    expect(await hold.next()).toBeUndefined()
  })

  it("takes an inherited socket, and leaks nothing else it inherited", async () => {
    await using other = await Init.start({ inherit: true })
    expect((await other.call({ op: "spawn", argv: ["ls", "/proc/self/fd"] })).out).toBe("0\n1\n2\n3\n")
    if (!isRoot) return // nobody else may look at a process that is not dumpable
    const names = await Promise.all(
      (await readdir(`/proc/${other.child.pid}/fd`)).map((fd) =>
        // One that was closed meanwhile is not inherited either.
        readlink(`/proc/${other.child.pid}/fd/${fd}`).catch(() => ""),
      ),
    )
    expect(names).not.toContain("/etc/passwd")
  })

  it("measures", async () => {
    const { last } = await init.call({ op: "usage" })
    expect(last).toMatchObject({ ev: "ok", zombiesReaped: expect.any(Number) as number })
    expect(Number(last["processes"])).toBeGreaterThan(0)
    expect(Number(last["memoryBytes"])).toBeGreaterThan(0)
    expect((last["disk"] as { totalBytes: number }).totalBytes).toBeGreaterThan(0)
  })
})

describe("spawn", () => {
  it("runs a program and reports once", async () => {
    const result = await init.sh("echo out; echo err >&2; exit 3")
    expect(result.out).toBe("out\n")
    expect(result.err).toBe("err\n")
    expect(result.events.map((event) => event["ev"])).toEqual(["started", "exit"])
    expect(result.last).toMatchObject({ code: 3, signal: null, reason: "exit", outputBytes: 8, truncated: false })
  })

  it("gives the process exactly its environment, directory and user", async () => {
    const { out } = await init.sh("env | sort; pwd; id -u; id -g; id -G", {
      env: { A: "b c", PATH: "/bin:/usr/bin" },
      cwd: "/tmp",
    })
    expect(out).toMatch(/^A=b c$/m)
    expect(out).toMatch(/^WARREN_OP=[0-9a-f]{32}$/m)
    expect(out).toMatch(/^PATH=\/bin:\/usr\/bin$/m)
    const names = out.match(/^[A-Z_]+(?==)/gm)
    expect(names).toEqual(["A", "HOME", "LOGNAME", "PATH", "PWD", "SHELL", "USER", "WARREN_OP"])
    expect(out.trim().split("\n").slice(-4)).toEqual(["/tmp", String(uid), String(gid), String(gid)])
  })

  it("takes every privilege away", async () => {
    const { out } = await init.sh(
      "grep -E '^(Cap|NoNew|Sig(Blk|Ign))' /proc/self/status; ulimit -c; cat /proc/self/oom_score_adj; umask",
    )
    if (isRoot) expect(out.match(/^Cap.*\t0{16}$/gm)).toHaveLength(5)
    expect(out).toContain("NoNewPrivs:\t1")
    expect(out).toMatch(/SigBlk:\t0{16}\nSigIgn:\t0{16}\n/)
    expect(out).toMatch(/\n0\n500\n0022\n$/)
  })

  it("leaks no descriptor", async () => {
    const { out } = await init.call({ op: "spawn", argv: ["ls", "/proc/self/fd"] })
    expect(out).toBe("0\n1\n2\n3\n")
  })

  it.each([
    ["not found in PATH", { argv: ["no-such-program"] }, "not_found"],
    ["not found", { argv: ["/no/such"] }, "not_found"],
    ["not executable", { argv: ["/etc/passwd"] }, "invalid"],
    ["a directory", { argv: ["/tmp"] }, "invalid"],
    ["cwd missing", { argv: ["true"], cwd: "/no/such" }, "not_found"],
    ["cwd relative", { argv: ["true"], cwd: "tmp" }, "invalid"],
    ["argv empty", { argv: [] }, "invalid"],
    ["argv missing", {}, "invalid"],
    ["argv not strings", { argv: [1] }, "invalid"],
    ["NUL in argv", { argv: ["a\0b"] }, "invalid"],
    ["NUL in env", { argv: ["true"], env: { A: "\0" } }, "invalid"],
    ["'=' in a name", { argv: ["true"], env: { "A=": "" } }, "invalid"],
    ["unknown user", { argv: ["true"], user: "nobody-here" }, "invalid"],
    ["bad timeout", { argv: ["true"], timeoutMs: -1 }, "invalid"],
    ["bad pty", { argv: ["true"], pty: { cols: 0 } }, "invalid"],
  ])("refuses: %s", async (_name, request, code) => {
    const { events } = await init.call({ op: "spawn", ...request })
    expect(events).toHaveLength(1)
    expect(events[0]).toMatchObject({ ev: "fault", code })
  })

  it("keeps counting at 4096 arguments and refuses 4097", async () => {
    const words = (n: number): string[] => ["sh", "-c", "echo $#", ...Array.from({ length: n - 3 }, () => "x")]
    expect((await init.call({ op: "spawn", argv: words(4096) })).out).toBe("4092\n")
    expect((await init.call({ op: "spawn", argv: words(4097) })).last).toMatchObject({ ev: "fault", code: "limit" })
    const env = (n: number): Record<string, string> =>
      Object.fromEntries(Array.from({ length: n }, (_, i) => [`V${i}`, "x"]))
    expect((await init.sh("env | grep -c ^V", { env: env(4096) })).out).toBe("4096\n")
    expect((await init.sh(":", { env: env(4097) })).last).toMatchObject({ code: "limit" })
  })

  it("takes what is still said to a program that has ended, so that its end is not lost with a broken pipe", async () => {
    using wire = init.open({ op: "spawn", argv: ["true"], stdin: true })
    expect(await wire.event()).toMatchObject({ ev: "started" })
    expect(await wire.event()).toMatchObject({ ev: "exit", code: 0 })
    expect(await wire.next()).toBeUndefined()
    const failure = await new Promise((resolve) => wire.socket.write(encode('{"op":"eof"}'), resolve))
    expect(failure).toBeFalsy()
  })

  it("feeds stdin, and end of file without it", async () => {
    using wire = init.open({ op: "spawn", argv: ["cat"], stdin: true })
    wire
      .bytes("hello ")
      .bytes(Buffer.from([0, 255, 10]))
      .send({ op: "eof" })
    expect((await wire.all()).bytes(2)).toEqual(Buffer.from("hello \0\xff\n", "latin1"))
    expect((await init.call({ op: "spawn", argv: ["cat"] })).last).toMatchObject({ code: 0, outputBytes: 0 })
  })

  it("passes megabytes both ways without loss", async () => {
    const data = Buffer.alloc(3_000_000, "0123456789abcdef\n")
    using wire = init.open({ op: "spawn", argv: ["cat"], stdin: true })
    for (let at = 0; at < data.length; at += 200_000) wire.bytes(data.subarray(at, at + 200_000))
    wire.send({ op: "eof" })
    const result = await wire.all()
    expect(result.bytes(2).equals(data)).toBe(true)
    expect(result.last).toMatchObject({ outputBytes: data.length })
  })

  it("warns about what is impossible and goes on", async () => {
    using wire = init.open({ op: "spawn", argv: ["sleep", "100"] })
    await wire.event()
    const impossible = [
      { op: "eof" },
      { op: "resize", cols: 1, rows: 1 },
      { op: "signal", name: "SIGNOPE" },
      { op: "what" },
    ]
    for (const message of impossible) expect(await wire.send(message).event()).toMatchObject({ ev: "warn" })
    expect(await wire.bytes("x").event()).toMatchObject({ ev: "warn", code: "conflict" })
    wire.send({ op: "signal", name: "SIGINT" })
    expect(await wire.event()).toMatchObject({ ev: "exit", code: null, signal: "SIGINT", reason: "signal" })
  })

  it("gives a terminal", async () => {
    using wire = init.open({
      op: "spawn",
      argv: ["sh", "-c", "tty; stty size; read x; stty size; echo got $x"],
      pty: { cols: 91, rows: 31 },
    })
    expect(await wire.until("31 91")).toMatch(/\/dev\/pts\/\d+/)
    wire.send({ op: "resize", cols: 100, rows: 40 }).bytes("word\n")
    const result = await wire.all()
    expect(result.out).toContain("40 100")
    expect(result.out).toContain("got word")
    expect(result.tags).toEqual([4])
  })

  it("makes the terminal belong to the user and be the controlling one", async () => {
    const { out } = await init.call({
      op: "spawn",
      argv: ["sh", "-c", 'stat -c %u "$(tty)"; : </dev/tty && echo mine; ps -o tpgid= -p $$ | tr -d " "; echo $$'],
      pty: { cols: 80, rows: 24 },
    })
    const [owner, mine, group, pid] = out.trim().split("\r\n")
    expect([owner, mine]).toEqual([String(uid), "mine"])
    expect(group).toBe(pid)
  })

  it("ends input of a terminal with eof", async () => {
    using wire = init.open({ op: "spawn", argv: ["cat"], pty: { cols: 80, rows: 24 } })
    await wire.event()
    wire.send({ op: "eof" })
    expect((await wire.all()).last).toMatchObject({ ev: "exit", code: 0 })
  })

  it("times out: TERM, grace, KILL", async () => {
    const obeys = await init.sh("trap 'echo term; exit 9' TERM; while :; do sleep 0.01; done", {
      timeoutMs: 200,
      graceMs: 20_000,
    })
    expect(obeys.out).toBe("term\n")
    expect(obeys.last).toMatchObject({ code: 9, reason: "timeout" })
    const ignores = await init.sh("trap '' TERM; while :; do sleep 0.01; done", { timeoutMs: 100, graceMs: 100 })
    expect(ignores.last).toMatchObject({ code: null, signal: "SIGKILL", reason: "timeout" })
  })

  it("kills descendants that left the group", async () => {
    const script =
      'echo $$; setsid sh -c "echo \\$\\$; sleep 1000" & (setsid setsid sh -c "echo \\$\\$; exec sleep 1000" &) ; wait; sleep 1000'
    using wire = init.open({ op: "spawn", argv: ["sh", "-c", script], timeoutMs: 700 })
    const result = await wire.all()
    const pids = result.out.trim().split("\n")
    expect(pids).toHaveLength(3)
    for (const pid of pids) {
      const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "gone")
      expect(status === "gone" || /State:\tZ/.test(status)).toBe(true)
    }
    expect(result.last).toMatchObject({ reason: "timeout" })
  })

  it("stops at the output limit, exactly", async () => {
    const at = await init.sh("printf 12345", { outputBytesMax: 5 })
    expect(at.last).toMatchObject({ code: 0, reason: "exit", outputBytes: 5, truncated: false })
    const over = await init.sh("printf 123456; sleep 100", { outputBytesMax: 5 })
    expect(over.out).toBe("12345")
    expect(over.last).toMatchObject({ reason: "limit", signal: "SIGKILL", outputBytes: 5, truncated: true })
    expect((await init.call({ op: "spawn", argv: ["yes"], outputBytesMax: 100_000 })).bytes().length).toBe(100_000)
  })

  it("does not wait for a daemon that keeps the pipe, and does not break it", async () => {
    const mark = `${init.workspace}/daemon`
    const result = await init.sh(
      `(sleep 0.2; i=0; while [ $i -lt 20000 ]; do echo line of some length $i; i=$((i+1)); done; echo done >${mark}) & echo started`,
    )
    expect(result.out).toContain("started\n")
    expect(result.last).toMatchObject({ code: 0, reason: "exit" })
    await init.settle(
      () => readFile(mark, "utf8").catch(() => ""),
      (text) => text === "done\n",
    )
  })

  it("kills the group when the host goes away", async () => {
    const wire = init.open({ op: "spawn", argv: ["sh", "-c", "echo $$; sleep 1000 & sleep 1000"] })
    const pid = (await wire.until("\n")).trim()
    wire.socket.destroy()
    await init.settle(
      () => init.sh(`ps -o pid= -g ${pid} | wc -l`),
      (result) => result.out.trim() === "0",
    )
    expect((await init.call({ op: "ps" })).last["processes"]).toEqual([])
  })

  it("holds back a process whose reader is slow, and nobody else", async () => {
    using slow = init.open({ op: "spawn", argv: ["sh", "-c", "head -c 4000000 /dev/zero; echo end >&2"] })
    await slow.event()
    slow.socket.pause()
    expect((await init.sh("echo quick")).out).toBe("quick\n")
    expect((await init.call({ op: "ps" })).last["processes"]).toHaveLength(1)
    slow.socket.resume()
    const result = await slow.all()
    expect(result.bytes(2).length).toBe(4_000_000)
    expect(result.err).toBe("end\n")
  })

  it("reports usage", async () => {
    const { last } = await init.sh("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
    const usage = last["usage"] as { cpuUs: number; maxRssBytes: number }
    expect(usage.cpuUs).toBeGreaterThan(0)
    expect(usage.maxRssBytes).toBeGreaterThan(100_000)
    expect(Number(last["durationUs"])).toBeGreaterThan(0)
  })
})

describe.skipIf(!isRoot)("users (needs root)", () => {
  it("gives root its few capabilities in dev, and refuses root in strict", async () => {
    const { out } = await init.sh("id -u; grep ^Cap /proc/self/status", { user: "root" })
    expect(out).toMatch(
      /^0\nCapInh:\t0{16}\nCapPrm:\t00000000800405fb\nCapEff:\t00000000800405fb\nCapBnd:\t00000000800405fb\nCapAmb:\t0{16}\n/,
    )
    await using strict = await Init.start({ profile: "strict" })
    for (const user of ["root", "0", "0:0", "0:1000", "1000:0"])
      expect((await strict.sh("id", { user })).last).toMatchObject({ ev: "fault", code: "forbidden" })
    expect((await strict.call({ op: "hello" })).last["abilities"]).not.toContain("sudo")
  })

  it("knows names, uids and groups", async () => {
    expect((await init.sh("id -u; id -g", { user: "daemon" })).out).toBe("1\n1\n")
    expect((await init.sh("id -u; id -g", { user: "1234:5678" })).out).toBe("1234\n5678\n")
    expect((await init.sh("id -u; id -g", { user: "1234" })).out).toBe("1234\n1234\n")
  })

  it("refuses other users when it cannot become them", async () => {
    const prefix = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--inh-caps=-all"]
    await using plain = await Init.start({ prefix })
    expect((await plain.sh("id -u")).out).toBe("1000\n")
    for (const user of ["root", "daemon", "1001", "1000:1001"])
      expect((await plain.sh("id", { user })).last).toMatchObject({ ev: "fault", code: "forbidden" })
  })
})
