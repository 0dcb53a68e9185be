import { execFileSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { eventually } from "@warren/base/testing/eventually.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { CliProgram } from "../apps/cli/src/testing/cli-program.ts"
import { Installed, type Home } from "./installed.ts"

let installed: Installed

beforeAll(async () => {
  installed = await Installed.make()
})

afterAll(() => installed[Symbol.asyncDispose]())

interface Status {
  readonly pid: number
  readonly port: number
  readonly runner: { readonly pid: number; readonly driver: string }
}

async function statusOf({ cli }: Home): Promise<Status> {
  return JSON.parse((await cli.run(["status", "--json"])).stdout) as Status
}

/** Whether it runs; one that has ended and that nobody has asked about yet does not. */
function isThere(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}

describe("warren start and stop", () => {
  test("a daemon answers when `start` returns, is known, and is gone when `stop` returns", async () => {
    await using home = await installed.home()
    const started = await home.cli.run(["start", "--daemon", "--json"])
    expect(started.code).toBe(0)
    const status = await statusOf(home)
    expect(JSON.parse(started.stdout)).toEqual({
      home: home.path,
      url: `http://localhost:${home.port}`,
      pid: status.pid,
    })
    expect(await home.cli.run(["status"])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("(daemon)") as string,
    })
    const twice = await home.cli.run(["start", "--daemon"])
    expect(twice).toMatchObject({ code: 8, stderr: expect.stringContaining("already running") as string })
    expect((await statusOf(home)).runner.pid).toBe(status.runner.pid)
    expect(await home.cli.run(["stop"])).toMatchObject({
      code: 0,
      stdout: "Warren has stopped: the runner and the control plane.\n",
    })
    expect([status.pid, status.runner.pid].filter(isThere)).toEqual([])
    expect(existsSync(`${home.path}/warren.pid`)).toBe(false)
  })

  test("in the foreground it says where it is, and Ctrl-C ends it well", async () => {
    await using home = await installed.home()
    await using running = home.cli.start("start")
    await running.until("Stop it with Ctrl-C")
    expect(running.stdout).toContain(`Warren is running: http://localhost:${home.port}`)
    const { runner } = await statusOf(home)
    running.child.kill("SIGINT")
    expect((await running.ended).code).toBe(0)
    expect(isThere(runner.pid)).toBe(false)
  })

  test("without one, every verb that needs it says which command starts one", async () => {
    await using home = await installed.home()
    for (const args of [["status"], ["stop"], ["ls"], ["exec", "x", "true"], ["logs", "-f"], ["stats", "--once"]]) {
      expect(await home.cli.run(args)).toMatchObject({
        code: 8,
        stdout: "",
        stderr: `warren: no runner is running for ${home.path}\n  start one with: warren start --daemon\n`,
      })
    }
    expect(JSON.parse((await home.cli.run(["ls", "--json"])).stderr)).toMatchObject({ error: { code: "unavailable" } })
    expect(await home.cli.run(["_complete", "--", "exec", ""])).toMatchObject({ code: 0, stdout: "", stderr: "" })
  })

  test("`run` starts one by itself, and says so", async () => {
    await using home = await installed.home()
    const { code, stdout, stderr } = await home.cli.run(["run", "echo", "here"])
    expect({ code, stdout }).toEqual({ code: 0, stdout: "here\n" })
    expect(stderr).toMatch(/starting Warren in the background/)
    expect(await home.cli.run(["run", "echo", "again"])).toMatchObject({ code: 0, stdout: "again\n", stderr: "" })
  })

  test("two at once: one starts, the other is refused, and what runs can be stopped", async () => {
    await using home = await installed.home()
    const both = await Promise.all([1, 2].map(() => home.cli.run(["start", "--daemon"])))
    expect(both.map(({ code }) => code)).toContain(0)
    expect((await statusOf(home)).runner.pid).toBeGreaterThan(0)
    expect((await home.cli.run(["stop"])).code).toBe(0)
    expect((await home.cli.run(["status"])).code).toBe(8)
  })

  test("a port that is taken is a failure of the start, and nothing is left of it", async () => {
    await using home = await installed.home()
    await using other = await installed.home()
    expect((await home.cli.run(["start", "--daemon"])).code).toBe(0)
    const { code, stderr } = await other.cli.with({ WARREN_PORT: String(home.port) }).run(["start", "--daemon"])
    expect(code).toBe(8)
    expect(stderr).toMatch(/port \d+ is taken by another program/)
    expect((await other.cli.run(["status"])).code).toBe(8)
  })

  test("killed, with the keeper or without: the next start is not in its way", async () => {
    await using home = await installed.home()
    await home.cli.run(["start", "--daemon"])
    const first = await statusOf(home)
    process.kill(first.runner.pid, "SIGKILL")
    await eventually(() => !isThere(first.pid))
    expect(await home.cli.run(["logs", "--json"])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("runner.ready") as string,
    })
    await home.cli.run(["start", "--daemon"])
    const second = await statusOf(home)
    process.kill(second.pid, "SIGKILL")
    await eventually(() => !isThere(second.pid))
    // Its runner goes on alone; `stop` finds it all the same.
    expect(await home.cli.run(["stop"])).toMatchObject({ code: 0, stderr: "" })
    expect([second.pid, second.runner.pid].filter(isThere)).toEqual([])
    expect((await home.cli.run(["start", "--daemon"])).code).toBe(0)
  })

  test("--insecure warns, and status says what is missing", async () => {
    await using home = await installed.home()
    // Started by root, this driver gives each sandbox an account of its own, which has to pass through to its folder.
    for (const folder of ["", "runner", "runner/sandboxes"]) {
      mkdirSync(`${home.path}/${folder}`, { recursive: true })
      chmodSync(`${home.path}/${folder}`, 0o711)
    }
    const { code, stderr } = await home.cli.run(["start", "--daemon", "--insecure"])
    expect(code).toBe(0)
    expect(stderr).toMatch(/only processes/)
    expect((await statusOf(home)).runner.driver).toBe("process")
    expect((await home.cli.run(["status"])).stdout).toMatch(/shell off, browser off[^]*less: insecure_process_tier/)
    expect((await home.cli.run(["start", "--insecure", "--driver", "oci"])).code).toBe(2)
  })
})

describe("variables", () => {
  test("reach sandboxes or agents, never both, and no list of processes", async () => {
    await using home = await installed.home()
    await using folder = await TempFolder.make()
    writeFileSync(folder.at("env"), "SHELL_FROM_FILE=file\n")
    const toml = `workspace_root = "${home.path}"\n[shell]\nenv_keys = ["NAMED"]\n[providers.x]\napi_key_env = "API_KEY"\n`
    writeFileSync(folder.at("runner.toml"), toml)
    const cli = home.cli.with({ NAMED: "named-value", API_KEY: "secret-key", WARREN_CONFIG: folder.at("runner.toml") })
    const flags = ["-e", "SHELL_SAID=said-value", "-e", "AGENT_ONLY=agent-value", "--env-file", folder.at("env")]
    expect((await cli.run(["start", "--daemon", ...flags])).code).toBe(0)
    const { stdout } = await cli.run(["run", "env"])
    expect(stdout).toMatch(/^SAID=said-value$/m)
    expect(stdout).toMatch(/^NAMED=named-value$/m)
    expect(stdout).toMatch(/^FROM_FILE=file$/m)
    expect(stdout).not.toMatch(/agent-value|secret-key|SHELL_/)
    const processes = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })
    expect(processes).not.toMatch(/said-value|agent-value|secret-key/)
  })

  test("a key of runner.toml that is not known stops the start, with its line", async () => {
    await using home = await installed.home()
    writeFileSync(`${home.path}/runner.toml`, 'default_driver = "oci"\n\n[shell]\nallow = ["*"]\n')
    const { code, stderr } = await home.cli.run(["start", "--daemon"])
    expect(code).toBe(2)
    expect(stderr).toBe(`warren: ${home.path}/runner.toml:4: unknown key shell.allow\n  known here: env_keys\n`)
    writeFileSync(`${home.path}/runner.toml`, "")
  })
})

describe("the tool", () => {
  test("npx warren runs what is built", async () => {
    const cli = CliProgram.at(resolve("node_modules/.bin/warren"))
    expect(await cli.run(["--help"])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("warren run") as string,
    })
    expect(await cli.run([])).toMatchObject({ code: 2 })
  })

  test("doctor says what the machine lacks, in words and in JSON", async () => {
    await using home = await installed.home()
    const { stdout } = await home.cli.run(["doctor"])
    expect(stdout).toMatch(/Sandboxes can be made|No sandbox can be made/)
    expect(JSON.parse((await home.cli.run(["doctor", "--json"])).stdout)).toMatchObject({
      probes: expect.any(Array) as unknown[],
    })
  })

  test("colours appear on a terminal, and not with NO_COLOR", async () => {
    await using home = await installed.home()
    const help = ["--help"]
    const onTerminal = async (cli: CliProgram): Promise<string> => {
      await using running = cli.startOnTerminal(help)
      return (await running.ended).stdout
    }
    expect(await onTerminal(home.cli)).toContain("\u001b[")
    expect(await onTerminal(home.cli.with({ NO_COLOR: "1" }))).not.toContain("\u001b[")
    expect((await home.cli.run(help)).stdout).not.toContain("\u001b[")
  })
})
