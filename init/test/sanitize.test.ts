import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { encode, Init, type Json, Wire } from "./client.ts"

/** The same program with address and undefined-behaviour sanitizers; disposing it fails if they said anything. */
describe("init with sanitizers", () => {
  let init: Init
  beforeAll(async () => void (init = await Init.start({ variant: "sanitize" })))
  afterAll(() => init[Symbol.asyncDispose]())

  it("spawns, kills, refuses", async () => {
    expect((await init.sh("echo out; echo err >&2; exit 3")).last).toMatchObject({ code: 3 })
    expect((await init.sh("head -c 3000000 /dev/zero")).bytes().length).toBe(3_000_000)
    expect((await init.sh("sleep 1000 & sleep 1000", { timeoutMs: 50 })).last).toMatchObject({ reason: "timeout" })
    expect((await init.call({ op: "spawn", argv: ["yes"], outputBytesMax: 10_000 })).last).toMatchObject({
      reason: "limit",
    })
    expect((await init.call({ op: "spawn", argv: ["no-such-program"] })).last).toMatchObject({ code: "not_found" })
    expect((await init.call({ op: "spawn", argv: ["true"], cwd: "/no" })).last).toMatchObject({ code: "not_found" })
    for (let i = 0; i < 10; i++) {
      const gone = init.open({ op: "spawn", argv: ["yes"] })
      if (i % 2) await gone.event()
      gone.socket.destroy()
    }
    using pty = init.open({ op: "spawn", argv: ["cat"], pty: { cols: 80, rows: 24 } }).bytes("x\n")
    await pty.until("x\r\nx")
    pty.send({ op: "eof" })
    expect((await pty.all()).last).toMatchObject({ code: 0 })
  })

  it("detaches and attaches", async () => {
    const { last } = await init.sh("head -c 300000 /dev/zero; echo end >&2", { detached: true, replayBytes: 1000 })
    const wires = [0, 1, 2].map(() => init.open({ op: "attach", pid: last["pid"] }))
    for (const wire of wires) expect((await wire.all()).last).toMatchObject({ ev: "exit" })
    for (let i = 0; i < 260; i++) await init.call({ op: "spawn", argv: ["true"], detached: true })
    await init.settle(
      () => init.call({ op: "ps" }),
      (result) => (result.last["processes"] as Json[]).every((one) => one["exit"] !== null),
    )
  })

  it("keeps shells", async () => {
    for (const shell of ["/bin/bash", "/bin/dash"]) {
      const id = (await init.call({ op: "shell.open", shell })).last["shell"]
      const run = (command: string, more: Json = {}): ReturnType<Init["call"]> =>
        init.call({ op: "shell.run", shell: id, command, ...more })
      for (const command of ["cd /tmp", "exit 3", "pwd", "if then", "exec true", "kill -9 $$", "seq 10000", ""])
        expect((await run(command)).last).toMatchObject({ ev: "done" })
      expect((await run("while :; do :; done", { timeoutMs: 50 })).last).toMatchObject({ reason: "timeout" })
      expect((await run("yes", { outputBytesMax: 5 })).last).toMatchObject({ reason: "limit" })
      const gone = init.open({ op: "shell.run", shell: id, command: "echo up; sleep 1000" })
      await gone.until("up")
      gone.socket.destroy()
      expect((await init.call({ op: "shell.close", shell: id })).last).toEqual({ ev: "ok" })
    }
    const gone = init.open({ op: "shell.open" })
    gone.socket.destroy()
  })

  it("works on files", async () => {
    const path = `${init.workspace}/f`
    using wire = init.open({ op: "file.write", path })
    expect((await wire.bytes("hello").send({ op: "eof" }).all()).last).toMatchObject({ ev: "ok" })
    expect((await init.call({ op: "file.read", path })).bytes(4).toString()).toBe("hello")
    expect((await init.call({ op: "file.list", path: "/etc", depth: 3 })).last).toMatchObject({ ev: "end" })
    using watch = init.open({ op: "file.watch", path: init.workspace, recursive: true })
    await watch.event()
    await init.sh(`cd ${init.workspace} && mkdir -p a/b && mv a c && rm -r c && touch end`)
    for (let change = await watch.event(); change["path"] !== "end";) change = await watch.event()
    expect((await init.call({ op: "file.remove", path })).last).toEqual({ ev: "ok" })
    expect((await init.call({ op: "connect", port: 1 })).last).toMatchObject({ ev: "fault" })
    expect((await init.call({ op: "usage" })).last).toMatchObject({ ev: "ok" })
  })

  it("survives random frames", async () => {
    let seed = 42
    const random = (n: number): number => (seed = (seed * 1103515245 + 12345) % 2147483648) % n
    const ops = [
      "hello",
      "spawn",
      "attach",
      "kill",
      "shell.run",
      "shell.open",
      "file.read",
      "file.write",
      "file.list",
      "connect",
      "hold",
      "usage",
    ]
    const values: unknown[] = [null, true, -1, 1e99, "", "/", "x", [], {}, ["true"], { cols: 1 }, "/bin/sh", 1]
    const keys = [
      "argv",
      "pid",
      "path",
      "env",
      "cwd",
      "user",
      "pty",
      "shell",
      "command",
      "timeoutMs",
      "port",
      "offset",
      "detached",
      "stdin",
    ]
    for (let i = 0; i < 300; i++) {
      const request: Record<string, unknown> = { op: ops[random(ops.length)], timeoutMs: 20 }
      for (let k = random(6); k > 0; k--) request[keys[random(keys.length)] ?? ""] = values[random(values.length)]
      const bytes = encode(JSON.stringify(request))
      for (let k = random(3); k > 1; k--) bytes[random(bytes.length)] = random(256)
      using wire = new Wire(init.socket).raw(bytes)
      wire.bytes("x").send({ op: "eof" })
      if (random(2)) await wire.next()
    }
    await init.settle(
      () => init.call({ op: "hello" }),
      (result) => result.last["ev"] === "ok",
    )
  })
})
