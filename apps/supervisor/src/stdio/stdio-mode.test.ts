import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { createServer } from "node:net"
import { once } from "node:events"
import { eventually } from "@warren/base/testing/eventually.ts"
import { bundleProgram } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { StdioEvent, stdioLimits } from "@warren/protocol/supervisor/lines.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { SupervisorProcess } from "../testing/supervisor-process.ts"

let folder: TempFolder
let program: string
let places = 0

beforeAll(async () => {
  folder = await TempFolder.make()
  program = await bundleProgram(new URL("../main.ts", import.meta.url), folder)
})
afterAll(() => folder[Symbol.asyncDispose]())

async function supervisor(script: string, env: Record<string, string> = {}): Promise<SupervisorProcess> {
  const made = new SupervisorProcess(program, {
    ...{ AGENT_CMD: "sh", AGENT_ARGS: JSON.stringify(["-c", script, "sh"]), AGENT_WORKSPACE: folder.path },
    ...env,
  })
  expect(await made.event()).toEqual({ ev: "system:ready" })
  return made
}

const isRunning = (pid: number): boolean => {
  try {
    return !/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}

describe("a supervisor on its standard input and output", () => {
  test("starts an agent, passes on what it says and what is said to it, and tells its end", async () => {
    await using it = await supervisor('echo "prompt: $1"; echo oops >&2; read line; echo "heard $line"; exit 4')
    it.say({ cmd: "chat", text: "early" })
    it.say({ cmd: "start", prompt: "do it" })
    const events = await it.until("agent:exit")
    expect(events[0]).toEqual({ ev: "agent:started", pid: expect.any(Number) })
    const said = (ev: string): string => events.map((one) => (one.ev === ev && "data" in one ? one.data : "")).join("")
    expect([said("agent:stdout"), said("agent:stderr")]).toEqual(["prompt: do it\nheard early\n", "oops\n"])
    expect(events.at(-1)).toEqual({ ev: "agent:exit", code: 4, signal: null, reason: "exit" })
    it.say({ cmd: "start", prompt: "again" })
    await it.until("agent:started")
    it.say({ cmd: "chat", text: "late" })
    expect(await it.until("agent:exit")).toContainEqual({ ev: "agent:stdout", data: "heard late\n" })
  })

  test("holds a whole conversation, line by line: every command and every event", async () => {
    await using it = await supervisor('echo "$@"; read line; echo "heard $line" >&2; exec sleep 1000')
    const heard: StdioEvent[] = []
    const next = async (): Promise<StdioEvent> => {
      const event = await it.event()
      heard.push(event)
      return event
    }
    it.say("not JSON")
    await next()
    const config = { model: "m", allowed_tools: ["Read", "Bash"], disallowed_tools: ["Edit"], max_turns: 3 }
    it.say({ cmd: "start", prompt: "do it", agent_config: config })
    await next()
    await next()
    it.say({ cmd: "exec", id: "req-1", argv: ["echo", "beside"] })
    await next()
    it.say({ cmd: "chat", text: "hello" })
    await next()
    it.say({ cmd: "stop" })
    await next()
    expect(heard).toEqual([
      { ev: "error", cmd: null, code: "invalid", message: "that is not JSON" },
      { ev: "agent:started", pid: expect.any(Number) },
      { ev: "agent:stdout", data: "--model m --allowedTools Read,Bash --disallowedTools Edit --max-turns 3 do it\n" },
      {
        ...{ ev: "exec:result", id: "req-1", code: 0, stdout: "beside\n", stderr: "", reason: "exit" },
        truncated: false,
      },
      { ev: "agent:stderr", data: "heard hello\n" },
      { ev: "agent:exit", code: null, signal: "SIGTERM", reason: "stopped" },
    ])
    expect(new Set(["system:ready", ...heard.map(({ ev }) => ev)])).toEqual(
      new Set(StdioEvent.options.map(({ shape }) => shape.ev.value)),
    )
  })

  test("answers what means nothing with an error, and goes on", async () => {
    await using it = await supervisor("true")
    for (const [line, cmd] of [
      ["{", null],
      ["[]", null],
      ['"start"', null],
      ['{"cmd":"dance"}', "dance"],
      ['{"cmd":"chat"}', "chat"],
      ['{"cmd":"exec","id":"1","argv":[]}', "exec"],
    ] as const) {
      it.say(line)
      expect(await it.event()).toMatchObject({ ev: "error", cmd, code: "invalid" })
    }
    it.say("x".repeat(stdioLimits.lineBytesMax + 1))
    expect(await it.event()).toMatchObject({ ev: "error", code: "limit" })
    it.say({ cmd: "stop" })
    expect(await it.event()).toMatchObject({ ev: "error", cmd: "stop", code: "conflict" })
    it.say({ cmd: "exec", id: "ok", argv: ["echo", "fine"] })
    expect(await it.event()).toMatchObject({ ev: "exec:result", id: "ok", stdout: "fine\n" })
  })

  test("refuses a second agent while one runs", async () => {
    await using it = await supervisor("read line")
    it.say({ cmd: "start" })
    await it.until("agent:started")
    it.say({ cmd: "start" })
    expect(await it.event()).toMatchObject({ ev: "error", cmd: "start", code: "conflict" })
  })

  test("stops an agent with everything it has started, also one that does not want to", async () => {
    const pids = folder.at(`pids${places++}`)
    await using it = await supervisor(`trap '' TERM; sleep 1000 & echo $! > ${pids}; echo $$ >> ${pids}; wait`)
    it.say({ cmd: "start" })
    await it.until("agent:started")
    await eventually(() => existsSync(pids) && readFileSync(pids, "utf8").split("\n").length === 3)
    it.say({ cmd: "stop" })
    expect((await it.until("agent:exit")).at(-1)).toMatchObject({ reason: "stopped", signal: "SIGKILL" })
    for (const pid of readFileSync(pids, "utf8").trim().split("\n")) await eventually(() => !isRunning(Number(pid)))
  }, 20_000)

  test("runs commands beside the agent: streams apart, with a limit of time and size, several at once", async () => {
    await using it = await supervisor("read line")
    it.say({ cmd: "start" })
    await it.until("agent:started")
    it.say({ cmd: "exec", id: "slow", argv: ["sleep", "1000"], timeoutMs: 50 })
    it.say({ cmd: "exec", id: "a", argv: ["sh", "-c", "echo out; echo err >&2; exit 3"] })
    it.say({ cmd: "exec", id: "b", argv: ["/no/such"] })
    it.say({ cmd: "exec", id: "c", argv: ["head", "-c", String(stdioLimits.execOutputBytesMax + 1), "/dev/zero"] })
    const results = new Map<string, object>()
    while (results.size < 4) {
      const event = await it.event()
      if (event.ev === "exec:result") results.set(event.id, event)
    }
    expect(results.get("a")).toMatchObject({
      code: 3,
      stdout: "out\n",
      stderr: "err\n",
      reason: "exit",
      truncated: false,
    })
    expect(results.get("b")).toMatchObject({ code: null, reason: "start" })
    expect(results.get("slow")).toMatchObject({ reason: "timeout" })
    expect(results.get("c")).toMatchObject({ code: 0, truncated: true })
  })

  test("ends with its host and with a signal, and takes the agent along", async () => {
    for (const leave of [(it: SupervisorProcess) => it.hangUp(), (it: SupervisorProcess) => it.signal("SIGTERM")]) {
      await using it = await supervisor("sleep 1000")
      it.say({ cmd: "start" })
      const [started] = await it.until("agent:started")
      leave(it)
      expect((await it.until("agent:exit")).at(-1)).toMatchObject({ reason: "stopped" })
      expect(await it.ended).toBe(0)
      if (started?.ev === "agent:started") await eventually(() => !isRunning(started.pid))
    }
  })

  test("says that a program is not there", async () => {
    await using it = await supervisor("", { AGENT_CMD: "/no/such" })
    it.say({ cmd: "start" })
    expect(await it.event()).toMatchObject({ ev: "agent:exit", code: null, reason: "start" })
  })
})

describe("a repository", () => {
  const git = (...args: string[]): string =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...args], { encoding: "utf8" })

  function origin(): string {
    const path = folder.at(`origin${places++}`)
    git("init", "-q", "-b", "main", path)
    git("-C", path, "commit", "-q", "--allow-empty", "-m", "one")
    git("-C", path, "branch", "there")
    return path
  }

  test("is cloned; a branch the remote has is followed, another is new; one that is there is used again", async () => {
    const repo = origin()
    const work = folder.at(`work${places++}`)
    await using it = await supervisor(
      "git branch -vv --list --format='%(refname:short) %(upstream:short)'; git rev-parse --abbrev-ref HEAD",
      {
        AGENT_WORKSPACE: work,
      },
    )
    for (const [branch, says] of [
      ["there", "there origin/there"],
      ["new", "new "],
      ["there", "there origin/there"],
    ] as const) {
      it.say({ cmd: "start", repo, branch })
      const events = await it.until("agent:exit")
      const text = events.map((event) => ("data" in event ? event.data : "")).join("")
      expect(events.at(-1)).toMatchObject({ code: 0 })
      expect(text).toContain(`${says}\n`)
      expect(text.trim().endsWith(branch)).toBe(true)
    }
  })

  test("that is not there is the named reason", async () => {
    await using it = await supervisor("true", { AGENT_WORKSPACE: folder.at(`work${places++}`) })
    it.say({ cmd: "start", repo: folder.at("nothing") })
    expect(await it.event()).toMatchObject({
      ev: "agent:exit",
      code: null,
      reason: "clone",
      message: expect.stringContaining("git"),
    })
  })

  test("that never comes does not keep it from stopping, nor from anything else", async () => {
    // A server that takes the connection and says nothing.
    const server = createServer(() => undefined).listen(0, "127.0.0.1")
    await once(server, "listening")
    const address = server.address()
    const port = typeof address === "object" ? address?.port : 0
    await using it = await supervisor("true", { AGENT_WORKSPACE: folder.at(`work${places++}`) })
    const connected = once(server, "connection")
    it.say({ cmd: "start", repo: `http://127.0.0.1:${port}/a/b.git` })
    await connected
    it.say({ cmd: "exec", id: "x", argv: ["echo", "alive"] })
    // The folder is not there yet, so it is said where it cannot run; it is answered all the same.
    expect(await it.event()).toMatchObject({ ev: "exec:result", id: "x" })
    it.say({ cmd: "stop" })
    expect(await it.event()).toMatchObject({ ev: "agent:exit", reason: "stopped" })
    server.close()
  })
})
