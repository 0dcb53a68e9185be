import { setTimeout as pause } from "node:timers/promises"
import { Fault } from "@warren/base/fault.ts"
import { Scope } from "@warren/base/scope.ts"
import { randomFrom } from "@warren/drivers/oci/testing/random.ts"
import type { Answer } from "@warren/protocol/contract.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Home } from "../runner/home.ts"
import { lastingLeaks } from "../runner/machine.ts"
import { Runner } from "../runner/runner.ts"
import type { Plane } from "../runner/talk.ts"

type Message = Answer<Plane, "chat.messages">["items"][number]

/** WARREN_AGENT_CHAOS: how many turns are struck; each strike is a point in time drawn from the seed. */
const runs = Number(process.env["WARREN_AGENT_CHAOS"] ?? 8)
const prompts = 3
const words = "The quick brown fox jumps over the lazy dog. ".repeat(6)
const steps = [
  { text: words, pieces: 40, delayMs: 4 },
  { tool: "look", result: "seen" },
  { text: "The end.", pieces: 3 },
]
const script = `[[script:${JSON.stringify({ steps })}]]`
const slowMs = 120_000

const scope = new Scope()
let home: Home
let runner: Runner

beforeAll(async () => {
  home = scope.use(new Home())
  runner = await Runner.start(home)
}, slowMs)
afterAll(async () => {
  await runner[Symbol.asyncDispose]()
  await scope.close()
}, slowMs)

/** What is done to a turn that is under way. */
const blows: Readonly<Record<string, (session: string) => Promise<unknown>>> = {
  "the supervisor is killed": (session) =>
    runner.talk.run(session, "pkill -9 -f -- --bootstrap; true", { user: "root" }),
  "the runner is killed": async () => {
    await runner.kill()
    runner = await Runner.start(home)
  },
  "it is frozen and thawed": async (id) => {
    await runner.talk.call("session.pause", { id })
    await pause(30)
    await runner.talk.call("session.resume", { id })
  },
  "it sleeps and is woken": async (id) => {
    await runner.talk.call("session.hibernate", { id })
    await runner.talk.call("session.restore", { id })
  },
  "a reader goes": async (id) => {
    for await (const _ of runner.talk.feed("session.feed", { id, after: 0 })) break
  },
}

describe.skipIf(process.getuid?.() !== 0)("turns in a real sandbox", () => {
  test.each(Array.from({ length: runs }, (_, seed) => seed + 1))(
    "whatever is done to them, each is answered or ends with its cause (seed %i)",
    { timeout: slowMs },
    async (seed) => {
      const random = randomFrom(seed)
      const { id } = await runner.talk.call("session.create", { network: { mode: "none" } })
      await runner.talk.call("agent.start", { session: id, spec: { adapter: "scripted" } })
      const said: Answer<Plane, "agent.prompt">[] = []
      for (let n = 0; n < prompts; n++) said.push(await runner.talk.call("agent.prompt", { session: id, text: script }))
      const names = Object.keys(blows)
      let struck = 0
      for (let left = 1 + Math.floor(random() * 3); left > 0; left--) {
        await pause(random() * 400)
        const name = names[Math.floor(random() * names.length)] ?? ""
        if (name !== "a reader goes" && name !== "it is frozen and thawed") struck++
        // A blow may meet a session that is on its way somewhere: then it is refused, and that is all right.
        await blows[name]?.(id).catch((failure: unknown) => {
          if (Fault.from(failure).code !== "conflict") throw failure
        })
      }
      await settled(id)
      const messages = await messagesOf(said[0]?.chatId ?? "")
      const ends = said.map(({ messageId }) => endOf(messages, messageId))
      expect(ends.filter((end) => end !== "end_turn").length).toBeLessThanOrEqual(struck)
      expect(await runner.talk.call("agent.get", { session: id })).toMatchObject({ status: "idle", prompts: [] })
      await runner.talk.call("session.delete", { id })
    },
  )

  test("nothing of it is left", { timeout: slowMs }, async () => {
    expect(await runner.talk.sessions()).toEqual([])
    expect(await lastingLeaks(home)).toEqual([])
  })
})

async function settled(session: string): Promise<void> {
  for (;;) {
    const { prompts: open, status } = await runner.talk.call("agent.get", { session })
    if (open.length === 0 && status === "idle") return
    await pause(20)
  }
}

async function messagesOf(chatId: string): Promise<Message[]> {
  return (await runner.talk.call("chat.messages", { id: chatId, limit: 200 })).items
}

/** One answer, and it is whole or a beginning; how it ended. */
function endOf(messages: readonly Message[], promptId: string): string {
  const answers = messages.filter((message) => message.promptId === promptId)
  expect(answers).toHaveLength(1)
  const [answer] = answers
  const text = answer?.parts.map((part) => (part.type === "text" ? part.text : "")).join("") ?? ""
  expect(answer?.state).toBe("final")
  if (answer?.reason === "end_turn") expect(text).toBe(`${words}The end.`)
  else {
    expect(`${words}The end.`.startsWith(text)).toBe(true)
    expect(answer).toMatchObject({
      reason: expect.stringMatching(/^(?:lost|canceled|error)$/),
      cause: expect.any(String),
    })
  }
  return answer?.reason ?? ""
}
