import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { eventually } from "@warren/base/testing/eventually.ts"
import { E2bSystem, sdks } from "./system.ts"

const system = await E2bSystem.start()
afterAll(() => system[Symbol.asyncDispose]())
const { options } = system

describe.each(sdks)("commands by $version", ({ sdk }) => {
  let sandbox: InstanceType<typeof sdk.Sandbox>
  beforeAll(async () => {
    sandbox = await sdk.Sandbox.create("base", { ...options, envs: { GIVEN: "from create" } })
  })
  afterAll(() => sandbox.kill())

  test("say what they print, on both streams, and how they end", async () => {
    const done = await sandbox.commands.run("echo out; echo err >&2")
    expect(done).toMatchObject({ exitCode: 0, stdout: "out\n", stderr: "err\n" })
    const failed = sandbox.commands.run("echo partly; exit 3")
    await expect(failed).rejects.toThrow(sdk.CommandExitError)
    await expect(failed).rejects.toMatchObject({ exitCode: 3, stdout: "partly\n", error: "exit status 3" })
  })

  test("are told as they come", async () => {
    const heard: string[] = []
    const handle = await sandbox.commands.run("echo one; read x; echo two >&2", {
      ...{ background: true, stdin: true, onStdout: (text) => void heard.push(`out ${text}`) },
      onStderr: (text) => void heard.push(`err ${text}`),
    })
    await eventually(() => heard.length === 1)
    await sandbox.commands.sendStdin(handle.pid, "go\n")
    expect(await handle.wait()).toMatchObject({ stdout: "one\n", stderr: "two\n" })
    expect(heard).toEqual(["out one\n", "err two\n"])
  })

  test("start at home, as the user, with what was given at creation and with them", async () => {
    const { stdout } = await sandbox.commands.run('pwd; whoami; echo "$HOME"; echo "$GIVEN $MORE"', {
      envs: { MORE: "and now" },
    })
    expect(stdout).toBe("/home/user\nuser\n/home/user\nfrom create and now\n")
  })

  test("run as somebody else, and elsewhere, when told", async () => {
    expect((await sandbox.commands.run("whoami; pwd", { user: "root" })).stdout).toBe("root\n/root\n")
    expect((await sandbox.commands.run("pwd", { cwd: "/tmp" })).stdout).toBe("/tmp\n")
    await sandbox.commands.run("mkdir -p project")
    expect((await sandbox.commands.run("pwd", { cwd: "project" })).stdout).toBe("/home/user/project\n")
    await expect(sandbox.commands.run("true", { cwd: "/no/such" })).rejects.toThrow("cwd '/no/such' does not exist")
    await expect(sandbox.commands.run("true", { user: "nobody-here" })).rejects.toThrow(
      "invalid username: 'nobody-here'",
    )
    expect((await sandbox.commands.run("sudo whoami")).stdout).toBe("root\n")
  })

  test("print a lot, and nothing of it is lost", async () => {
    const bytes = 12 * 1024 * 1024
    const { stdout } = await sandbox.commands.run(`head -c ${bytes} /dev/zero | tr '\\0' x; echo end`)
    expect(stdout.length).toBe(bytes + 4)
    expect(stdout.endsWith("xend\n")).toBe(true)
    const { stdout: text } = await sandbox.commands.run("printf 'a\\xc3\\xa4\\xe2\\x82\\xac\\xf0\\x9f\\x90\\x87'")
    expect(text).toBe("aä€🐇")
  })

  test("many at once", async () => {
    const all = await Promise.all(Array.from({ length: 20 }, (_, at) => sandbox.commands.run(`echo ${at}`)))
    expect(all.map(({ stdout }) => Number(stdout))).toEqual(Array.from({ length: 20 }, (_, at) => at))
  })

  test("read what is sent to them until it is closed", async () => {
    const handle = await sandbox.commands.run("cat; echo over", { background: true, stdin: true })
    await handle.sendStdin("hello ")
    await handle.sendStdin("wörld\n")
    await handle.closeStdin()
    expect((await handle.wait()).stdout).toBe("hello wörld\nover\n")
    const binary = await sandbox.commands.run("od -An -tx1 -v | tr -d ' \\n'", { background: true, stdin: true })
    await binary.sendStdin(new Uint8Array([0, 255, 128, 10]))
    await binary.closeStdin()
    expect((await binary.wait()).stdout).toBe("00ff800a")
    expect((await sandbox.commands.run("cat; echo none")).stdout).toBe("none\n")
  })

  test("in the background are listed, killed, and then gone", async () => {
    const handle = await sandbox.commands.run("sleep 1000", { background: true })
    expect(handle.pid).toBeGreaterThan(1)
    const listed = (await sandbox.commands.list()).find(({ pid }) => pid === handle.pid)
    expect(listed).toMatchObject({ cmd: "/bin/bash", args: ["-l", "-c", "sleep 1000"] })
    expect(await sandbox.commands.kill(handle.pid)).toBe(true)
    await expect(handle.wait()).rejects.toMatchObject({ exitCode: -1, error: "signal: killed" })
    await expect(sandbox.commands.run(`kill -0 ${handle.pid}`)).rejects.toThrow(sdk.CommandExitError)
    expect(await sandbox.commands.kill(handle.pid)).toBe(false)
    expect(await sandbox.commands.kill(999_999)).toBe(false)
    expect((await sandbox.commands.list()).some(({ pid }) => pid === handle.pid)).toBe(false)
  })

  test("go on when nobody listens, and are found again with all they have said", async () => {
    const handle = await sandbox.commands.run("echo before; read x; echo after; exit 7", {
      background: true,
      stdin: true,
    })
    await handle.disconnect()
    const heard: string[] = []
    const again = await sandbox.commands.connect(handle.pid, { onStdout: (text) => void heard.push(text) })
    await eventually(() => heard.join("") === "before\n")
    await sandbox.commands.sendStdin(handle.pid, "go\n")
    await expect(again.wait()).rejects.toMatchObject({ exitCode: 7, stdout: "before\nafter\n" })
    const late = await sandbox.commands.connect(handle.pid)
    await expect(late.wait()).rejects.toMatchObject({ exitCode: 7, stdout: "before\nafter\n" })
    await expect(sandbox.commands.connect(999_999)).rejects.toThrow(sdk.NotFoundError)
  })

  test("that take longer than they may are ended", async () => {
    const run = sandbox.commands.run("echo $$ > ~/slow.pid; sleep 1000", { timeoutMs: 1_500 })
    await expect(run).rejects.toThrow(sdk.TimeoutError)
    const { stdout } = await sandbox.commands.run(
      'while kill -0 "$(cat ~/slow.pid)" 2>/dev/null; do sleep 0.05; done; echo gone',
    )
    expect(stdout).toBe("gone\n")
  })

  test("on a terminal", async () => {
    let screen = ""
    const hear = (bytes: Uint8Array): void => void (screen += Buffer.from(bytes).toString())
    const pty = await sandbox.pty.create({ cols: 80, rows: 24, onData: hear, envs: { NAME: "warren" } })
    const type = (text: string): Promise<void> => sandbox.pty.sendInput(pty.pid, new TextEncoder().encode(text))
    await type("stty size; echo $TERM-$NAME\n")
    await eventually(() => screen.includes("24 80") && screen.includes("xterm-256color-warren"))
    await sandbox.pty.resize(pty.pid, { cols: 100, rows: 30 })
    await type("stty size\n")
    await eventually(() => screen.includes("30 100"))
    await pty.disconnect()
    let other = ""
    const again = await sandbox.pty.connect(pty.pid, {
      onData: (bytes) => void (other += Buffer.from(bytes).toString()),
    })
    await eventually(() => other.includes("30 100"))
    await type("exit 5\n")
    await expect(again.wait()).rejects.toMatchObject({ exitCode: 5 })
    const doomed = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => undefined })
    expect(await sandbox.pty.kill(doomed.pid)).toBe(true)
    await expect(doomed.wait()).rejects.toMatchObject({ exitCode: -1 })
  })
})
