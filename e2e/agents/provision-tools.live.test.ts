import { agentTools, toolLimits } from "@warren/protocol/hub/tools.ts"
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import { Home } from "../runner/home.ts"
import { Runner } from "../runner/runner.ts"

// Many processes on a machine that others use, too.
vi.setConfig({ testTimeout: 180_000 })

const scripted = { adapter: "scripted" } as const
const written = (...steps: object[]): string => `[[script:${JSON.stringify({ steps })}]]`
let home: Home
let runner: Runner

beforeAll(async () => {
  home = new Home()
  runner = await Runner.start(home)
})
afterAll(async () => {
  for (const { id } of await runner.talk.sessions())
    await runner.talk.call("session.delete", { id }).catch(() => undefined)
  await runner.stop()
  await home[Symbol.asyncDispose]()
})

interface Answered {
  readonly isError?: boolean
  readonly content: readonly { readonly text: string }[]
  readonly structuredContent?: Record<string, unknown>
}

/** A session with an agent and no network, and its tools asked as its agent asks: by a program inside, over MCP. */
class Asking {
  readonly id: string

  constructor(id: string) {
    this.id = id
  }

  static async start(name: string): Promise<Asking> {
    const { id } = await runner.talk.call("session.create", {
      name,
      network: { mode: "none" },
      workspace: `work-${name}`,
    })
    await runner.talk.call("agent.start", { session: id, spec: scripted })
    return new Asking(id)
  }

  async ask(name: keyof typeof agentTools, input: object = {}): Promise<Answered> {
    const request = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: input } }
    const line = JSON.stringify(request).replaceAll("'", String.raw`'\''`)
    const command = `printf '%s\\n' '${line}' | node /tmp/.warren/supervisor.mjs --tools`
    const { text } = await runner.talk.run(this.id, command)
    return (JSON.parse(text) as { result: Answered }).result
  }

  async good(name: keyof typeof agentTools, input: object = {}): Promise<Record<string, unknown>> {
    const { isError, content, structuredContent = {} } = await this.ask(name, input)
    if (isError) throw new Error(content[0]?.text)
    return structuredContent
  }
}

const until = async (holds: () => Promise<boolean>): Promise<void> => {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 50))
}

describe("the tools of an agent", () => {
  test("start sessions like its own, talk with them, hear of their end, and end them", async () => {
    const parent = await Asking.start("parent")
    const task = written({ text: "on it" })
    const made = await parent.good("spawn_session", { task, name: "first-child" })
    const child = new Asking(String(made["session"]))
    const session = await runner.talk.call("session.get", { id: child.id })
    expect(session).toMatchObject({ name: "first-child", network: { mode: "none" }, labels: { parent: parent.id } })
    const isIdle = async (): Promise<boolean> =>
      (await runner.talk.call("agent.get", { session: child.id })).prompts.length === 0
    await until(isIdle)
    expect(await parent.good("read_messages", { session: "first-child" })).toMatchObject({
      messages: [
        { from: "user", text: task },
        { from: "assistant", text: "on it" },
      ],
    })
    await parent.good("send_message", { session: child.id, text: written({ text: "again" }) })
    await until(isIdle)
    expect(JSON.stringify(await parent.good("read_messages", { session: child.id, after: 2 }))).toContain("again")

    await child.good("send_message", { session: "parent", text: "I need help" })
    await child.good("complete", { summary: "All done" })
    expect(await parent.good("read_messages")).toMatchObject({
      messages: [
        { from: child.id, text: "I need help" },
        { from: child.id, text: "All done" },
      ],
    })
    expect(await parent.good("list_sessions")).toMatchObject({
      sessions: [{ session: child.id, isComplete: true, waiting: 0 }],
    })
    expect(await child.good("session_status")).toMatchObject({ parent: parent.id, children: 0 })
    await parent.good("terminate_session", { session: "first-child" })
    await expect(runner.talk.call("session.get", { id: child.id })).rejects.toMatchObject({ code: "not_found" })
    expect(await parent.good("list_sessions")).toEqual({ sessions: [] })
  })

  test("do nothing to a session that is not its child, not even say that it is there", async () => {
    const one = await Asking.start("mine")
    const other = await Asking.start("other")
    const tries = [
      ["terminate_session", { session: other.id }],
      ["send_message", { session: "other", text: "do this" }],
      ["read_messages", { session: other.id }],
      ["session_status", { session: "other" }],
      ["send_message", { session: "parent", text: "hello" }],
      ["terminate_session", { session: one.id }],
    ] as const
    for (const [name, input] of tries) {
      const { isError, content } = await one.ask(name, input)
      expect({ name, isError, text: content[0]?.text }).toMatchObject({
        name,
        isError: true,
        text: expect.stringMatching(/^not_found: /),
      })
    }
    const made = await other.good("spawn_session", { task: written({ text: "x" }) })
    const child = new Asking(String(made["session"]))
    // Neither somebody else's child, nor a child its parent or its sisters.
    expect(await one.ask("terminate_session", { session: child.id })).toMatchObject({ isError: true })
    expect(await child.ask("terminate_session", { session: other.id })).toMatchObject({ isError: true })
    expect((await runner.talk.call("session.get", { id: other.id })).state).toBe("running")
    // What it has started goes with it.
    await runner.talk.call("session.delete", { id: other.id })
    await until(async () => !(await runner.talk.sessions()).some(({ id }) => id === child.id))
  })

  test("are bounded in number, also when many are asked for at once", async () => {
    const one = await Asking.start("many")
    const lines = Array.from({ length: toolLimits.childrenMax + 1 }, (_, id) =>
      JSON.stringify({
        jsonrpc: "2.0",
        id,
        method: "tools/call",
        params: { name: "spawn_session", arguments: { task: "x", repo: "/nowhere" } },
      }),
    )
    await runner.talk.write(one.id, "/tmp/lines", `${lines.join("\n")}\n`)
    const { text } = await runner.talk.run(one.id, "node /tmp/.warren/supervisor.mjs --tools < /tmp/lines")
    const said = text
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { result: Answered }).result.content[0]?.text ?? "")
    expect(said.filter((one) => one.startsWith("limit: this session has started"))).toHaveLength(1)
    expect(said.filter((one) => one.includes("clone: "))).toHaveLength(toolLimits.childrenMax)
    expect(await one.good("list_sessions")).toEqual({ sessions: [] })
  })

  test("are bounded in depth, and what is refused leaves nothing", async () => {
    let at = await Asking.start("deep")
    for (let depth = 1; depth <= toolLimits.depthMax; depth++) {
      const made = await at.good("spawn_session", { task: written({ text: "x" }), name: `deep-${depth}` })
      at = new Asking(String(made["session"]))
    }
    const before = (await runner.talk.sessions()).length
    const refused = await at.ask("spawn_session", { task: "x" })
    expect(refused.content[0]?.text).toMatch(/^limit: /)
    expect(await at.ask("spawn_session", { task: "x", shareWorkspace: true })).toMatchObject({ isError: true })
    const wrong = await (await Asking.start("wide")).ask("spawn_session", { task: "x", repo: "/nowhere" })
    expect(wrong.content[0]?.text).toContain("clone: ")
    expect((await runner.talk.sessions()).length).toBe(before + 1)
  })

  test("show git, images and ports", async () => {
    const one = await Asking.start("shows")
    await runner.talk.run(one.id, "cd /workspace && git init -q -b trunk && touch a")
    expect(await one.good("git_state")).toMatchObject({ isRepository: true, branch: "trunk", changes: 1 })
    await runner.talk.run(one.id, "printf '\\211PNG\\r\\n\\032\\nrest' > /tmp/a.png; echo no > /tmp/b.png")
    const { messageId } = await one.good("upload_image", { path: "/tmp/a.png", caption: "Look" })
    const { channels } = await runner.talk.call("agent.get", { session: one.id })
    const { items } = await runner.talk.call("chat.messages", { id: channels[0]?.chatId ?? "" })
    expect(items.find(({ id }) => id === messageId)?.parts).toEqual([
      { type: "file", name: "a.png", mediaType: "image/png", path: "/tmp/a.png" },
      { type: "text", text: "Look" },
    ])
    expect(await one.ask("upload_image", { path: "/tmp/b.png" })).toMatchObject({ isError: true })
    expect(await one.ask("upload_image", { path: "/nowhere" })).toMatchObject({ isError: true })
    expect(await one.good("create_tunnel", { name: "web", port: 3000 })).toMatchObject({
      visibility: "private",
      port: 3000,
    })
    expect(await one.good("list_tunnels")).toMatchObject({ tunnels: [{ name: "web" }] })
    expect(await one.good("delete_tunnel", { name: "web" })).toEqual({ isDeleted: true })
  })
})
