import { createHash, randomBytes } from "node:crypto"
import { spawnSync } from "node:child_process"
import { eventually } from "@warren/base/testing/eventually.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import type { Ended } from "@warren/protocol/user-plane/processes.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { z } from "zod"
import { CliProgram } from "../testing/cli-program.ts"
import { ScriptedRunner, sessionOf } from "../testing/scripted-runner.ts"

let cli: CliProgram
let folder: TempFolder
let runner: ScriptedRunner

beforeAll(async () => {
  folder = await TempFolder.make()
  runner = await ScriptedRunner.start(folder.path)
  runner.sessions.set("dev", sessionOf("dev"))
  cli = (await CliProgram.build()).with({ WARREN_HOME: folder.path })
})

afterAll(async () => {
  await runner[Symbol.asyncDispose]()
  await cli[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const exec = (...command: string[]) => ["exec", "dev", "--", ...command]

describe("a program in a session", () => {
  test("its output and its exit code are as if it ran here", async () => {
    const { code, stdout, stderr } = await cli.run(exec("sh", "-c", "echo out; echo err >&2; exit 7"))
    expect({ code, stdout, stderr }).toEqual({ code: 7, stdout: "out\n", stderr: "err\n" })
  })

  test("what went wrong does not steer the terminal, whoever worded it", async () => {
    const { code, stderr } = await cli.run(exec("\u001b[2Jnobody"))
    expect([code, stderr]).toEqual([3, 'warren: there is no program "␛[2Jnobody"\n'])
  })

  test.each(["TERM", "KILL", "SEGV", "INT"])(
    "one that SIG%s ended has the exit code a shell gives it",
    async (name) => {
      const { code } = await cli.run(exec("sh", "-c", `kill -${name} $$`))
      expect(code).toBe(spawnSync("bash", ["-c", `sh -c 'kill -${name} $$'; exit $?`]).status)
    },
  )

  test("bytes go through unchanged, in both directions", async () => {
    const bytes = randomBytes(3 * 1024 * 1024)
    await using running = cli.start(...exec("cat"))
    running.child.stdin?.end(bytes)
    expect((await running.ended).code).toBe(0)
    expect(createHash("sha256").update(running.bytes).digest("hex")).toBe(
      createHash("sha256").update(bytes).digest("hex"),
    )
  })

  test("an input that is not read does not hold anything up", async () => {
    await using running = cli.start(...exec("sh", "-c", "exit 4"))
    running.child.stdin?.write(Buffer.alloc(4 * 1024 * 1024))
    expect((await running.ended).code).toBe(4)
  })

  test("-n gives it an empty input", async () => {
    const { stdout } = await cli.run(["exec", "-n", "dev", "wc", "-c"], "not for it")
    expect(stdout.trim()).toBe("0")
  })

  test("what has dashes and no -- is the program's own", async () => {
    expect((await cli.run(["exec", "dev", "echo", "--help", "-n", "--json"])).stdout).toBe("--help -n --json\n")
  })

  test("Ctrl-C reaches it, even behind input that it does not read", async () => {
    await using running = cli.start(
      ...exec("sh", "-c", "trap 'kill -9 $!; echo caught; exit 5' INT; sleep 60 & echo ready; wait"),
    )
    running.child.stdin?.write(Buffer.alloc(4 * 1024 * 1024))
    await running.until("ready")
    running.child.kill("SIGINT")
    const { code, stdout } = await running.ended
    expect({ code, stdout }).toEqual({ code: 5, stdout: "ready\ncaught\n" })
  })

  test("the second Ctrl-C kills it", async () => {
    await using running = cli.start(...exec("sh", "-c", "trap 'echo no' INT; echo ready; while :; do sleep 1; done"))
    await running.until("ready")
    running.child.kill("SIGINT")
    await running.until("no")
    running.child.kill("SIGINT")
    expect((await running.ended).code).toBe(137)
  })

  test("SIGTERM is passed on as what it is", async () => {
    await using running = cli.start(...exec("sh", "-c", "trap 'kill -9 $!; exit 6' TERM; sleep 60 & echo ready; wait"))
    await running.until("ready")
    running.child.kill("SIGTERM")
    expect((await running.ended).code).toBe(6)
  })

  test("a reader who leaves ends it", async () => {
    await using running = cli.start(...exec("sh", "-c", "while :; do echo line; done"))
    await running.until("line")
    running.child.stdout?.destroy()
    expect((await running.ended).code).toBe(141)
    await eventually(() => runner.programs.size === 0)
  })

  test("a CLI that is killed ends it", async () => {
    await using running = cli.start(...exec("sh", "-c", "echo ready; exec sleep 60"))
    await running.until("ready")
    running.child.kill("SIGKILL")
    await eventually(() => runner.programs.size === 0)
  })

  test("a program that is not there, and a session that is not there, are faults", async () => {
    expect(await cli.run(exec("no-such-program"))).toMatchObject({
      code: 3,
      stdout: "",
      stderr: 'warren: there is no program "no-such-program"\n',
    })
    const { code, stderr } = await cli.run(["exec", "--json", "nobody", "true"])
    expect(code).toBe(3)
    expect(JSON.parse(stderr)).toEqual({ error: { code: "not_found", message: 'there is no session "nobody"' } })
  })

  test("--json gives one answer, and what is no text in base64", async () => {
    const { code, stdout } = await cli.run([
      "exec",
      "--json",
      "dev",
      "sh",
      "-c",
      "echo out; printf '\\377' >&2; exit 9",
    ])
    expect(code).toBe(9)
    expect(JSON.parse(stdout)).toMatchObject({
      session: "dev",
      exitCode: 9,
      signal: null,
      reason: "exit",
      stdout: "out\n",
      stderrBase64: "/w==",
    })
    expect(runner.asked.findLast(({ name }) => name === "process.exec")?.input).toMatchObject({
      outputBytesMax: 16 * 1024 * 1024,
    })
  })

  test("what the flags say is what is asked for", async () => {
    const args = ["-w", "/srv", "-u", "root", "-e", "A=1", "-e", "HERE", "-e", "UNSET", "--timeout", "90s"]
    await cli.with({ HERE: "yes" }).run(["exec", ...args, "dev", "true"])
    expect(runner.asked.findLast(({ name }) => name === "process.exec")?.input).toMatchObject({
      cwd: "/srv",
      user: "root",
      env: { A: "1", HERE: "yes" },
      timeoutMs: 90_000,
      argv: ["true"],
    })
  })
})

describe("a runner that fails", () => {
  const ending = (ended: Partial<z.output<typeof Ended>>) => ({
    exitCode: null,
    signal: "SIGKILL",
    reason: "signal" as const,
    durationMs: 1,
    truncated: false,
    ...ended,
  })

  test.each([
    ["oom", 137, /no more memory/],
    ["timeout", 124, /longer than --timeout/],
  ] as const)("a program that ended for %s is explained", async (reason, code, words) => {
    await using home = await TempFolder.make()
    await using scripted = await ScriptedRunner.start(home.path, {
      "process.exec": () => {
        const items = [{ ev: "exit" as const, ...ending({ reason }) }]
        const conversation = { next: () => Promise.resolve(items.shift()), send: () => undefined }
        return Promise.resolve({
          ...conversation,
          write: () => Promise.resolve(),
          [Symbol.asyncDispose]: () => Promise.resolve(),
        })
      },
    })
    scripted.sessions.set("dev", sessionOf("dev"))
    const outcome = await cli.with({ WARREN_HOME: home.path }).run(exec("true"))
    expect(outcome.code).toBe(code)
    expect(outcome.stderr).toMatch(words)
  })

  test("a connection that breaks is a fault, not an exit of the program", async () => {
    await using running = cli.start(...exec("sh", "-c", "echo ready; exec sleep 60"))
    await running.until("ready")
    runner.cut()
    const { code, stderr } = await running.ended
    expect(code).toBe(8)
    expect(stderr).toMatch(/closed the connection/)
  })

  test("a session that `run` made goes when the program cannot be started", async () => {
    const { code } = await cli.run(["run", "--name", "short", "--", "no-such-program"])
    expect(code).toBe(3)
    expect(runner.sessions.has("short")).toBe(false)
  })
})

describe("run", () => {
  test("makes a session as the flags say, runs in it, and takes it away", async () => {
    const flags = ["--name", "mine", "--memory", "1g", "--cpus", "0.5", "--allow", "github.com", "--label", "a=b"]
    const { code, stdout } = await cli.run(["run", ...flags, "--", "sh", "-c", "echo $((6*7)); exit 3"])
    expect({ code, stdout }).toEqual({ code: 3, stdout: "42\n" })
    expect(runner.asked.findLast(({ name }) => name === "session.create")?.input).toMatchObject({
      name: "mine",
      limits: { memoryBytes: 2 ** 30, cpus: 0.5 },
      network: { mode: "proxy", allow: ["github.com"] },
      labels: { a: "b" },
      idle: { afterMs: 60_000, action: "stop" },
    })
    expect(runner.sessions.has("mine")).toBe(false)
  })

  test("--keep keeps it and says its name", async () => {
    const { stderr } = await cli.run(["run", "--keep", "--name", "kept", "true"])
    expect(stderr).toBe("The session is kept.\n")
    expect(runner.sessions.delete("kept")).toBe(true)
  })

  test("Ctrl-C takes the session away, too", async () => {
    await using running = cli.start("run", "--name", "stopped", "--", "sh", "-c", "echo ready; exec sleep 60")
    await running.until("ready")
    running.child.kill("SIGINT")
    expect((await running.ended).code).toBe(130)
    expect(runner.sessions.has("stopped")).toBe(false)
  })

  test("--allow with a network that has no proxy is refused before anything happens", async () => {
    const before = runner.asked.length
    const { code, stderr } = await cli.run(["run", "--net", "host", "--allow", "github.com", "true"])
    expect(code).toBe(2)
    expect(stderr).toMatch(/--allow is for --net proxy/)
    expect(runner.asked.length).toBe(before)
  })
})
