import { execFile } from "node:child_process"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import { CliProgram, type Running } from "../../apps/cli/src/testing/cli-program.ts"
import { dist, Home } from "../runner/home.ts"
import { Runner } from "../runner/runner.ts"

// Many processes on a machine that others use, too.
vi.setConfig({ testTimeout: 180_000 })

const run = promisify(execFile)
const written = (...steps: object[]): string => `[[script:${JSON.stringify({ steps })}]]`
let home: Home
let runner: Runner
let cli: CliProgram
let folder: TempFolder

beforeAll(async () => {
  folder = await TempFolder.make()
  home = new Home()
  runner = await Runner.start(home)
  cli = CliProgram.at(join(dist, "cli.js")).with({ WARREN_HOME: home.path })
})
afterAll(async () => {
  for (const { id } of await runner.talk.sessions()) await runner.talk.call("session.delete", { id })
  await runner.stop()
  await home[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

async function said(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await cli.run(args)
  expect({ code, stderr }).toMatchObject({ code: 0 })
  return stdout
}

const isShown = async (running: Running, text: string): Promise<void> => {
  while (!running.stdout.includes(text)) {
    if (running.child.exitCode !== null) throw new Error(`it ended: ${running.stdout} ${running.stderr}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

describe("warren agent", () => {
  test("start makes a session, does what it is told and prints the answer; no key is needed", async () => {
    const { code, stdout, stderr } = await cli.run([
      "agent",
      "start",
      "--name",
      "first",
      "--net",
      "none",
      "Who are you?",
    ])
    expect(stderr).toContain("Session first")
    expect(code).toBe(0)
    expect(stdout).toContain("You said: Who are you?")
    expect(stdout).toMatch(/● bash echo|○ bash echo/)
    expect(stdout).toContain("  user in /home/user")
    expect(await said("agent", "status", "first")).toMatch(/agent: +scripted\nstatus: +idle/)
    expect(await said("ls", "-q")).toContain("first")
  })

  test("start brings a repository, and git shows what was done there", async () => {
    await said("create", "--name", "repo", "--net", "none")
    const git =
      "git init -q -b main /home/user/origin && cd /home/user/origin && echo hello > a && git add a && git -c user.name=a -c user.email=a@b commit -qm first"
    await said("exec", "repo", "--", "sh", "-c", git)
    await writeFile(folder.at("who.md"), "You are kind.")
    const task = written({ run: "cat a $WARREN_PERSONA_FILE; echo more >> a; echo n > b" })
    const args = ["--session", "repo", "--repo", "/home/user/origin", "--branch", "fix", "--folder", "work"]
    const { stdout, stderr, code } = await cli.run(["agent", "start", ...args, "--persona", folder.at("who.md"), task])
    expect(code).toBe(0)
    expect(stderr).toContain("checkout: new branch fix")
    expect(stdout).toContain("  hello\n  You are kind.")
    expect(stdout).toContain("changed: a, b")
    expect(await said("git", "state", "repo")).toMatch(/branch: +fix\n[^]*changes: +2/)
    expect(await said("git", "files", "repo")).toMatch(/modified +1 +0 +a\nadded +1 +0 +b/)
    const patch = await said("git", "diff", "repo", "a")
    await writeFile(folder.at("patch"), patch)
    await writeFile(folder.at("a"), "hello\n")
    await run("git", ["apply", folder.at("patch")], { cwd: folder.path })
    expect((await run("cat", [folder.at("a")])).stdout).toBe("hello\nmore\n")
    const failing = await cli.run(["agent", "start", "--session", "repo", "--repo", "/nowhere", "hello"])
    expect(failing.code).not.toBe(0)
    expect(failing.stderr).toContain("clone: ")
  })

  test("prompt, answer, abort and stop do what they say; a prompt that is aborted says so in its code", async () => {
    await said("agent", "start", "--name", "asks", "--net", "none", "--detach")
    const asking = written({ question: "Which one?", options: ["left", "right"] })
    await using waiting = cli.start("agent", "prompt", "asks", asking)
    await isShown(waiting, "  2 right")
    expect(await said("agent", "status", "asks")).toContain("? Which one?")
    expect(await said("agent", "answer", "asks", "2")).toContain("right")
    expect((await waiting.ended).code).toBe(0)
    expect(waiting.stdout).toContain("Answer: right")

    await using hanging = cli.start("agent", "prompt", "asks", written({ text: "begun" }, { hang: true }))
    await isShown(hanging, "begun")
    hanging.child.kill("SIGINT")
    expect(await hanging.ended).toMatchObject({ code: 130, stdout: expect.stringContaining("— aborted") })
    expect(await said("agent", "abort", "asks")).toBe("It was doing nothing.\n")

    const failing = await cli.run(["agent", "prompt", "asks", written({ fail: "no", cause: "billing" })])
    expect(failing).toMatchObject({ code: 1, stdout: expect.stringContaining("— failed (billing)") })
    await writeFile(folder.at("pic.png"), "png")
    const lines = await said(
      "agent",
      "prompt",
      "asks",
      "--json",
      "--attach",
      folder.at("pic.png"),
      written({ text: "x" }),
    )
    const items = lines
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { type: string; message?: { role: string; parts: { type: string }[] } })
    expect(items.find(({ message }) => message?.role === "user")?.message?.parts).toMatchObject([
      { type: "text" },
      { type: "file" },
    ])
    expect(await said("agent", "stop", "asks")).toBe("Stopped.\n")
  })
})

describe("warren attach", () => {
  test("says what is piped in, one after the other, and ends when everything is done", async () => {
    await said("agent", "start", "--name", "piped", "--net", "none", "--detach")
    const asking = written({ question: "Sure?", options: ["yes", "no"] })
    const first = written({ text: "one" })
    const { code, stdout } = await cli.run(["attach", "piped"], `${first}\n`)
    expect(code).toBe(0)
    expect(stdout).toContain("\none\n")
    await using running = cli.start("attach", "piped")
    await isShown(running, "one")
    running.child.stdin?.write(`${asking}\n`)
    await isShown(running, "  1 yes")
    running.child.stdin?.end("1\n")
    expect(await running.ended).toMatchObject({ code: 0, stdout: expect.stringContaining("Answer: yes") })
  })

  test("on a terminal Ctrl-C aborts what runs, and leaves when nothing does", async () => {
    await said("agent", "start", "--name", "seen", "--net", "none", "--detach")
    await using running = cli.startOnTerminal(["attach", "seen"], "trap : INT")
    running.child.stdin?.write(`${written({ text: "begun" }, { hang: true })}\n`)
    await isShown(running, "\nbegun")
    running.child.stdin?.write("\u0003")
    await isShown(running, "— aborted")
    // Whether it has heard that there is nothing to abort any more is not to be seen: it is pressed until it leaves.
    const pressing = setInterval(() => running.child.stdin?.write("\u0003"), 200)
    expect((await running.ended.finally(() => clearInterval(pressing))).code).toBe(0)
  })

  test("--tui fills the screen, types, answers, aborts and gives the screen back", async () => {
    await said("agent", "start", "--name", "full", "--net", "none", "--detach")
    await using running = cli.startOnTerminal(["attach", "full", "--tui"])
    await isShown(running, "\u001b[?1049h")
    await isShown(running, "Enter says it")
    running.child.stdin?.write(
      `${written({ question: "Which?", options: ["left"] }, { text: "begun" }, { hang: true })}\r`,
    )
    await isShown(running, "? Which?")
    running.child.stdin?.write("1\r")
    await isShown(running, "Answer: left")
    await isShown(running, "begun")
    running.child.stdin?.write("\u0003")
    await isShown(running, "— aborted")
    while ((await runner.talk.call("agent.get", { session: "full" })).prompts.length > 0);
    running.child.stdin?.write("\u0004")
    expect((await running.ended).code).toBe(0)
    expect(running.stdout).toContain("\u001b[?1049l")
    const piped = await cli.run(["attach", "full", "--tui"])
    expect(piped).toMatchObject({ code: 7, stderr: expect.stringContaining("needs a terminal") })
  })
})
