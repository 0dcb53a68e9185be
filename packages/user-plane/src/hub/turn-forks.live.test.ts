import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { GatewaySystem } from "../gateway/testing/gateway-system.ts"
import type { Message } from "../chat/chats.ts"

/** Answers with what it was given: so it is seen what an agent was told. */
const echo = { adapter: "command" as const, cmd: "/bin/echo", args: ["heard:"], speaks: "lines" as const }

describe.skipIf(process.getuid?.() !== 0)("a fork", { timeout: 120_000 }, () => {
  const system = new GatewaySystem()
  let session = ""
  beforeAll(async () => {
    await system.open()
    session = (await system.ask.call("session.create", { name: "parent", network: { mode: "none" } })).id
    await system.ask.call("agent.start", { session, spec: echo })
  }, 120_000)
  afterAll(() => system[Symbol.asyncDispose](), 60_000)

  /** Says something, and waits until it was answered. */
  async function say(to: string, text: string): Promise<string> {
    const { messageId, chatId } = await system.ask.call("agent.prompt", { session: to, text })
    for (;;) {
      const { items } = await system.ask.call("chat.messages", { id: chatId })
      if (items.some((one) => one.promptId === messageId && one.state === "final")) return messageId
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  async function said(to: string): Promise<Message[]> {
    const { channels } = await system.ask.call("agent.get", { session: to })
    return (await system.ask.call("chat.messages", { id: channels[0]?.chatId ?? "" })).items
  }

  const textOf = (message: Message | undefined): string =>
    message?.parts.map((part) => (part.type === "text" ? part.text : "")).join("") ?? ""

  test("from a turn has what was said up to it, files as they were in a snapshot, and goes its own way", async () => {
    await system.ask.run(session, "echo one > ~/note")
    const first = await say(session, "the first thing")
    await system.ask.call("snapshot.create", { session })
    await system.ask.run(session, "echo two > ~/note")
    const second = await say(session, "the second thing")
    await say(session, "the third thing")

    const then = await system.ask.call("session.fork", { id: "parent", turn: first, name: "then" })
    expect(then).toMatchObject({
      files: "then",
      sessions: [{ name: "then", parent: session, agent: { adapter: "command" } }],
    })
    expect((await system.ask.run("then", "cat ~/note")).stdout).toBe("one\n")
    expect((await said("then")).map(textOf)).toEqual(["the first thing", expect.stringContaining("the first thing")])

    // There is no snapshot of it: said, not hidden.
    const now = await system.ask.call("session.fork", { id: "parent", turn: second, name: "now" })
    expect(now.files).toBe("now")
    expect((await system.ask.run("now", "cat ~/note")).stdout).toBe("two\n")
    expect(await said("now")).toHaveLength(4)

    await say("then", "another way")
    const [, , mine, answer] = await said("then")
    expect(textOf(mine)).toBe("another way")
    // The agent was told what it was not there for; once.
    expect(textOf(answer)).toMatch(/heard:[^]*Person: the first thing[^]*another way/)
    expect(textOf(answer)).not.toContain("the second thing")
    await say("then", "and on")
    expect(textOf((await said("then")).at(-1))).not.toContain("the first thing")
    expect(await said(session)).toHaveLength(6)
  })

  test("from the last turn has the files of now, which are those of then; an answer names its turn, too", async () => {
    const answer = (await said(session)).at(-1)
    const { files, sessions } = await system.ask.call("session.fork", { id: session, turn: answer?.id, count: 2 })
    expect([files, sessions.length]).toEqual(["then", 2])
    for (const { id } of sessions) expect(await said(id)).toHaveLength(6)
  })

  test("from what was never said is refused, and leaves nothing", async () => {
    const before = (await system.ask.call("session.list", { limit: 200 })).items.length
    for (const turn of ["msg_nothing", "x"])
      await expect(system.ask.call("session.fork", { id: session, turn })).rejects.toMatchObject({ code: "not_found" })
    expect((await system.ask.call("session.list", { limit: 200 })).items).toHaveLength(before)
  })

  test("is compared with another: what differs, where, and not what only looks different", async () => {
    const odd = "a b\\ttab\\n.txt"
    await system.ask.run(
      session,
      `mkdir -p ~/code/node_modules/x && cd ~/code && echo same > same && echo same > touched
      echo old > changed && ln -s same link && echo kept > gone && printf x > node_modules/x/y && printf 1 > "$(printf '${odd}')"`,
    )
    const { sessions } = await system.ask.call("session.fork", { id: session, name: "other" })
    await system.ask.run(
      "other",
      `cd ~/code && touch -d '1 hour ago' touched && echo new > changed && ln -sfn touched link
      rm gone && echo more > added && printf y > node_modules/x/y && printf 2 > "$(printf '${odd}')"`,
    )
    const asked = { id: session, other: "other", folder: "/home/user/code" }
    const found = await system.ask.call("session.compare", asked)
    expect(found).toMatchObject({ folder: "/home/user/code", isCut: false })
    expect(found.files.map(({ path, where }) => [path, where])).toEqual([
      ["a b\ttab\n.txt", "both"],
      ["added", "there"],
      ["changed", "both"],
      ["gone", "here"],
      ["link", "both"],
    ])
    const back = await system.ask.call("session.compare", { ...asked, id: "other", other: session })
    expect(back.files.map(({ where }) => where)).toEqual(["both", "here", "both", "there", "both"])
    expect((await system.ask.call("session.compare", { ...asked, other: session })).files).toEqual([])
    // Where people work unless somebody says: not what programs keep in a home for themselves.
    await system.ask.run("other", "echo 1 > /workspace/made; mkdir -p ~/.config; echo 2 > ~/.config/own")
    const usual = await system.ask.call("session.compare", { id: session, other: "other" })
    expect(usual.folder).toBe("/")
    expect(usual.files.map(({ path }) => path)).toEqual([
      ...["a b\ttab\n.txt", "added", "changed", "gone", "link"].map((path) => `home/user/code/${path}`),
      "workspace/made",
    ])
    await expect(system.ask.call("session.compare", { ...asked, folder: "/nowhere" })).rejects.toBeInstanceOf(Error)
    expect(sessions).toHaveLength(1)
  })
})
