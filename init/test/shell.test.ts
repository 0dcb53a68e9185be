import { readFile } from "node:fs/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Init, type Json, type Result, uid } from "./client.ts"

let init: Init
beforeAll(async () => void (init = await Init.start()))
afterAll(() => init[Symbol.asyncDispose]())

/** A shell of its own for each test. */
class Shell implements AsyncDisposable {
  readonly id: string
  constructor(id: string) {
    this.id = id
  }
  static async open(more: Json = {}): Promise<Shell> {
    const { last } = await init.call({ op: "shell.open", ...more })
    expect(last).toMatchObject({ ev: "ok" })
    return new Shell(String(last["shell"]))
  }
  run(command: string, more: Json = {}): Promise<Result> {
    return init.call({ op: "shell.run", shell: this.id, command, ...more })
  }
  async out(command: string): Promise<string> {
    return (await this.run(command)).out
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await init.call({ op: "shell.close", shell: this.id })
  }
}

const isAlive = (pid: string): Promise<boolean> =>
  readFile(`/proc/${pid}/stat`, "utf8").then(
    (stat) => !/\) [ZX] /.test(stat),
    () => false,
  )

describe.each(["/bin/bash", "/bin/dash"])("%s", (shell) => {
  const open = (more: Json = {}): Promise<Shell> => Shell.open({ shell, ...more })

  it("remembers directory, exports, functions, options and $?", async () => {
    await using sh = await open()
    expect((await sh.run("cd /tmp; export A=5; f() { echo f$A; }; set -u; false")).last).toMatchObject({
      code: 1,
      cwd: "/tmp",
      reason: "exit",
      restarted: false,
      signal: null,
    })
    expect(await sh.out("echo $?; f; pwd; sh -c 'echo $A'")).toBe("1\nf5\n/tmp\n5\n")
    expect((await sh.run("echo $undefined")).last).toMatchObject({ restarted: false })
    expect(await sh.out("set +u; echo $undefined; f")).toBe("\nf5\n")
  })

  it("keeps background jobs", async () => {
    await using sh = await open()
    const pid = (await sh.out("sleep 1000 & echo $!")).trim()
    // An interactive bash ignores TERM, and so does its child until it has become the program: one sent before that is lost.
    await sh.run(`until [ "$(cat /proc/${pid}/comm)" = sleep ]; do :; done`)
    expect(await isAlive(pid)).toBe(true)
    expect((await sh.run("sleep 1000", { timeoutMs: 100 })).last).toMatchObject({ reason: "timeout", code: null })
    expect(await isAlive(pid)).toBe(true)
    expect(await sh.out(`kill ${pid}; wait ${pid} 2>/dev/null; echo $?`)).toMatch(/143\n$/)
  })

  it("puts stdout and stderr in the order written", async () => {
    await using sh = await open()
    const result = await sh.run("for i in 1 2 3; do echo o$i; echo e$i >&2; done")
    expect(result.out).toBe("o1\ne1\no2\ne2\no3\ne3\n")
    expect(result.tags).toEqual([2])
  })

  it.each([
    ["exit 3", { code: 3, restarted: true, reason: "exit" }],
    ["exec true", { code: 0, restarted: true }],
    ["exec sh -c 'exit 7'", { code: 7, restarted: true }],
    ["set -e; false; echo no", { code: 1, restarted: true }],
    ["kill -9 $$", { code: null, signal: "SIGKILL", reason: "signal", restarted: true }],
  ])("survives the end of its shell: %s", async (command, expected) => {
    await using sh = await open({ env: { KEPT: "yes" } })
    await sh.run("cd /usr; export LOST=1")
    expect((await sh.run(command)).last).toMatchObject({ ...expected, cwd: "/usr" })
    const next = await sh.run("echo $KEPT [$LOST]; pwd")
    expect(next.out).toBe("yes []\n/usr\n")
    expect(next.last).toMatchObject({ code: 0, restarted: false })
  })

  it.each([["if then"], ["echo 'abc"], ['echo "abc'], ["echo $("], [")"], ["for"], ["cat <<"]])(
    "survives a syntax error: %s",
    async (command) => {
      await using sh = await open()
      await sh.run("A=kept")
      const { last, out } = await sh.run(command)
      expect(last).toMatchObject({ restarted: false, reason: "exit" })
      expect(Number(last["code"])).toBeGreaterThan(0)
      expect(out).not.toBe("")
      expect(await sh.out("echo $A")).toBe("kept\n")
    },
  )

  it.each([
    ["a here-document", "cat <<E\nhi $((1+1))\nE\necho after", "hi 2\nafter\n"],
    ["a quoted here-document", "cat <<'E'\n$A\nE", "$A\n"],
    ["several lines", "a=1\nif true\nthen\n  echo $a\nfi\n", "1\n"],
    ["a comment at the end", "echo x # and no newline", "x\n"],
    ["nothing", "", ""],
    ["only a newline", "\n", ""],
    ["reading stdin", "cat; read x; echo $?", "1\n"],
    ["output without newline", "printf abc", "abc"],
    ["output like a marker", "printf '1 0 /\\n\\0'; printf '2 9 /etc\\n\\0'", "1 0 /\n\0" + "2 9 /etc\n\0"],
    ["return", "return 0; echo no", ""],
    ["break", "break 2>/dev/null; echo after", "after\n"],
    ["a subshell", "(cd /; exit 4); echo $?", "4\n"],
    ["a pipeline", "seq 3 | while read x; do echo $x; done | tail -1", "3\n"],
    ["redirecting the shell", "exec 3>&1; echo x >&3", "x\n"],
    ["closing everything", "exec 1>&- 2>&-; echo gone", ""],
    ["killing its stdout", "exec >/dev/null; echo gone", ""],
  ])("defines %s", async (_name, command, expected) => {
    await using sh = await open()
    const result = await sh.run(command)
    expect(result.out).toBe(expected)
    expect(result.last).toMatchObject({ reason: "exit", restarted: false })
    expect(await sh.out("echo next")).toBe("next\n")
  })

  it("keeps binary output as it is", async () => {
    await using sh = await open()
    const result = await sh.run("printf '\\000\\377\\200\\012\\033'")
    expect(result.bytes()).toEqual(Buffer.from([0, 255, 128, 10, 27]))
  })

  it("shows the command no descriptor but 0, 1, 2", async () => {
    await using sh = await open()
    expect(await sh.out("ls /proc/self/fd")).toBe("0\n1\n2\n3\n")
    expect(await sh.out("readlink /proc/self/fd/0")).toBe("/dev/null\n")
    for (const fd of [3, 4, 5, 6, 7, 8, 9])
      expect((await sh.run(`echo x >&${fd}`)).last).toMatchObject({ restarted: false })
    expect(await sh.out("echo fine")).toBe("fine\n")
  })

  it("takes a command of a megabyte, and one that arrives in frames", async () => {
    await using sh = await open()
    const long = "x".repeat(1_000_000)
    expect((await sh.run(`v='${long}'; echo \${#v}`)).out).toBe("1000000\n")
    using wire = init.open({ op: "shell.run", shell: sh.id })
    for (let i = 0; i < 20; i++) wire.bytes(i === 0 ? `v='${"y".repeat(200_000)}` : "y".repeat(200_000))
    wire.bytes("'; echo ${#v}").send({ op: "eof" })
    expect((await wire.all()).out).toBe("4000000\n")
  })

  it("stops at 8 MiB of command", async () => {
    await using sh = await open()
    using wire = init.open({ op: "shell.run", shell: sh.id })
    for (let i = 0; i < 33; i++) wire.bytes("#".repeat(256 * 1024 - 1))
    expect((await wire.all()).last).toMatchObject({ ev: "fault", code: "limit" })
    expect(await sh.out("echo next")).toBe("next\n")
  })

  it.each([
    ["a program", "sleep 1000; echo REST"],
    ["a busy loop", "while :; do :; done; echo REST"],
    ["a loop in functions", "f() { while :; do sleep 1; done; }; g() { f; echo REST; }; g; echo REST"],
    ["a pipeline", "sleep 1000 | cat; echo REST"],
    ["a deaf subshell", "(trap '' INT TERM HUP; sleep 1000; sleep 1000); echo REST"],
    ["a program that handles INT", `sh -c 'trap "exit 0" INT TERM; while :; do sleep 1; done'; echo REST`],
    ["wait", "sleep 1000 & wait; echo REST"],
    ["an escape by setsid", "setsid -w sleep 1000; echo REST"],
    ["a FIFO", "mkfifo p$$; read x <p$$; echo REST"],
  ])("interrupts %s and lives", async (_name, command) => {
    await using sh = await open({ cwd: init.workspace })
    await sh.run("export STATE=kept")
    const result = await sh.run(command, { timeoutMs: 150 })
    expect(result.out).not.toContain("REST")
    expect(result.last).toMatchObject({ ev: "done", reason: "timeout", code: null, restarted: false })
    expect(await sh.out("echo $STATE")).toBe("kept\n")
    await init.settle(
      () => init.sh("ps -eo args= | grep -c '^sleep 1000' || true", { user: String(uid) }),
      () => true,
    )
  })

  it("leaves nothing of an aborted run, also what had left the session", async () => {
    await using sh = await open()
    const pids = `${init.workspace}/pids-${sh.id}`
    const command = `setsid sh -c 'echo $$ >>${pids}; sleep 1000' & (setsid setsid sh -c 'echo $$ >>${pids}; exec sleep 1000' &); sleep 1000`
    expect((await sh.run(command, { timeoutMs: 400 })).last).toMatchObject({ reason: "timeout" })
    const found = (await readFile(pids, "utf8")).trim().split("\n")
    expect(found).toHaveLength(2)
    for (const pid of found) expect(await isAlive(pid)).toBe(false)
  })

  it("replaces a shell that cannot be brought back", async () => {
    await using sh = await open()
    const { last } = await sh.run("trap '' INT PROF; while :; do :; done", { timeoutMs: 100 })
    expect(last).toMatchObject({ reason: "timeout", code: null, restarted: true })
    expect(await sh.out("echo next")).toBe("next\n")
  })

  it("stops at the output limit, exactly", async () => {
    await using sh = await open()
    expect((await sh.run("printf 12345", { outputBytesMax: 5 })).last).toMatchObject({
      reason: "exit",
      truncated: false,
      outputBytes: 5,
    })
    const over = await sh.run("printf 123456; sleep 1000", { outputBytesMax: 5 })
    expect(over.out).toBe("12345")
    expect(over.last).toMatchObject({ reason: "limit", truncated: true, outputBytes: 5, restarted: false })
    expect((await sh.run("yes", { outputBytesMax: 300_000 })).last).toMatchObject({
      reason: "limit",
      outputBytes: 300_000,
    })
    expect(await sh.out("echo next")).toBe("next\n")
  })

  it("stops when the host goes away, and takes the next run", async () => {
    await using sh = await open()
    const wire = init.open({
      op: "shell.run",
      shell: sh.id,
      command: "A=kept; echo $$; exec 3>&1; sleep 1000; echo REST",
    })
    await wire.until("\n")
    wire.socket.destroy()
    // The next may come before init has noticed: then it is a conflict, once.
    const next = await init.settle(
      () => sh.run("echo next $A"),
      (result) => result.last["code"] !== "conflict",
    )
    expect(next.out).toBe("next kept\n")
  })

  it("is one at a time", async () => {
    await using sh = await open()
    using wire = init.open({ op: "shell.run", shell: sh.id, command: "echo go; sleep 1000" })
    await wire.until("go")
    expect((await sh.run("true")).last).toMatchObject({ ev: "fault", code: "conflict" })
    expect((await init.call({ op: "shell.list" })).last["shells"]).toContainEqual(
      expect.objectContaining({ shell: sh.id, busy: true }),
    )
  })

  it("passes megabytes of output", async () => {
    await using sh = await open()
    const result = await sh.run("head -c 5000000 /dev/zero; echo end")
    expect(result.bytes().length).toBe(5_000_004)
    expect(result.last).toMatchObject({ outputBytes: 5_000_004 })
  })

  it("answers after an interrupt that the command sent itself", async () => {
    await using sh = await open()
    expect((await sh.run("kill -INT $$; echo no")).last).toMatchObject({ ev: "done", code: 130 })
    expect(await sh.out("echo next")).toBe("next\n")
  })

  it("says once that its shell had ended between two runs", async () => {
    await using sh = await open()
    const pid = (await sh.out("echo $$")).trim()
    await init.call({ op: "kill", pid: Number(pid), name: "SIGKILL" })
    await init.settle(
      () => isAlive(pid),
      (alive) => !alive,
    )
    expect((await sh.run("echo new")).last).toMatchObject({ code: 0, restarted: true })
    expect((await sh.run("echo same")).last).toMatchObject({ code: 0, restarted: false })
  })

  it("starts in the first directory when the last one is gone", async () => {
    await using sh = await open({ cwd: "/tmp" })
    await sh.run(`mkdir -p ${init.workspace}/gone; cd ${init.workspace}/gone; rmdir ../gone`)
    expect((await sh.run("exit 1")).last).toMatchObject({ restarted: true })
    expect(await sh.out("pwd")).toBe("/tmp\n")
  })

  it("is shown, and closed with everything it started", async () => {
    const sh = await open({ cols: 101, rows: 33 })
    expect(await sh.out("echo $COLUMNS $LINES; tty; [ -t 0 ] || echo no")).toBe("101 33\nnot a tty\nno\n")
    const pid = (await sh.out("setsid sleep 1000 & echo $!")).trim()
    const listed = (await init.call({ op: "shell.list" })).last["shells"] as Json[]
    const mine = listed.find((one) => one["shell"] === sh.id)
    expect(mine).toMatchObject({ path: shell, busy: false, cwd: init.workspace })
    expect((await init.call({ op: "ps" })).last["processes"]).toContainEqual(
      expect.objectContaining({ shell: sh.id, pid: mine?.["pid"], user: uid }),
    )
    expect((await init.call({ op: "shell.close", shell: sh.id })).last).toEqual({ ev: "ok" })
    expect(await isAlive(pid)).toBe(false)
    expect((await sh.run("true")).last).toMatchObject({ code: "not_found" })
  })
})

describe("shells", () => {
  it("prefers bash", async () => {
    await using sh = await Shell.open()
    expect(await sh.out('echo "${BASH_VERSION:+bash}"')).toBe("bash\n")
  })

  it.each([
    ["no such shell", { shell: "/no/such" }, "not_found"],
    ["not a path", { shell: "bash" }, "invalid"],
    ["no such directory", { cwd: "/no/such" }, "not_found"],
    ["no such user", { user: "nobody-here" }, "invalid"],
  ])("refuses: %s", async (_name, request, code) => {
    expect((await init.call({ op: "shell.open", ...request })).last).toMatchObject({ ev: "fault", code })
  })

  it("knows only its own", async () => {
    for (const op of ["shell.run", "shell.close"])
      expect((await init.call({ op, shell: "sh0", command: "" })).last).toMatchObject({ code: "not_found" })
  })

  it("refuses a NUL in a command", async () => {
    await using sh = await Shell.open()
    expect((await sh.run("echo \0")).last).toMatchObject({ ev: "fault", code: "invalid" })
    using wire = init.open({ op: "shell.run", shell: sh.id }).bytes("echo \0")
    expect((await wire.all()).last).toMatchObject({ ev: "fault", code: "invalid" })
    expect(await sh.out("echo next")).toBe("next\n")
  })

  // They are deaf to TERM, as shells that people sit at are: only a hang-up ends them.
  it.each(["/bin/bash", "/bin/dash"])("do not hold up a stop: %s", { timeout: 20_000 }, async (shell) => {
    await using other = await Init.start()
    const { last } = await other.call({ op: "shell.open", shell })
    // Until it has become the program, a job of an interactive shell is as deaf to TERM as the shell.
    const command = 'sleep 1000 & until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done'
    await other.call({ op: "shell.run", shell: last["shell"], command })
    using hold = other.open({ op: "hold" })
    await hold.event()
    await other.call({ op: "stop", graceMs: 3_600_000 })
    expect(await hold.next()).toBeUndefined()
  })

  it("are at most 64", async () => {
    await using other = await Init.start()
    for (let i = 0; i < 64; i++)
      expect((await other.call({ op: "shell.open", shell: "/bin/dash" })).last).toMatchObject({ ev: "ok" })
    expect((await other.call({ op: "shell.open" })).last).toMatchObject({ ev: "fault", code: "limit" })
    await other.call({ op: "shell.close", shell: "sh1" })
    expect((await other.call({ op: "shell.open" })).last).toMatchObject({ ev: "ok" })
  })
})
