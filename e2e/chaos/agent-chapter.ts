import { setTimeout as pause } from "node:timers/promises"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Answer } from "@warren/protocol/contract.ts"
import type { Plane, Talk } from "../runner/talk.ts"
import { noSession, session } from "./facts.ts"
import type { Chapter, Fact, Facts, Step } from "./story.ts"

type Message = Answer<Plane, "chat.messages">["items"][number]

const words = "The quick brown fox jumps over the lazy dog. ".repeat(2)
const end = "The end."
const steps = [
  { text: words, pieces: 6, delayMs: 2 },
  { tool: "look", result: "seen" },
  { text: end, pieces: 2 },
]
const script = `[[script:${JSON.stringify({ steps })}]]`
/** Goes on until somebody has had enough, or for a minute. */
const longSteps = [{ text: words, pieces: 60, delayMs: 1_000 }, ...steps.slice(1)]
const longScript = `[[script:${JSON.stringify({ steps: longSteps })}]]`
const lookAgainMs = 20
const anything: Fact = async () => undefined
const nothingSaid = { agent: anything, said: anything, answers: anything, unwanted: anything }

interface Hardship {
  /** For the supervisor, which is in the sandbox. */
  readonly env: Readonly<Record<string, string>>
  /** Turns that may end otherwise than the agent ended them. */
  readonly lossesMax: number
  /** Looks into the sandbox when everything is answered. */
  look?(talk: Talk, session: string): Promise<void>
}

/** An agent, three things said to it that it answers, and two that nobody wants any more. Names begin with `p`. */
export function agentChapter(p: string, { env, lossesMax, look }: Hardship): Chapter {
  const name = `${p}g`
  const ids = Array.from({ length: 5 }, () => newId("msg"))
  const [wanted, unwanted] = [ids.slice(0, 3), ids.slice(3)]
  const prompt = (n: number, text: string, also: Facts = {}): Step => ({
    name: `prompt ${n + 1}`,
    act: (talk) => talk.call("agent.prompt", { session: name, text, messageId: ids[n] }),
    // The same words with the same id are the same prompt.
    isRepeated: true,
    after: { said: said(name, ids.slice(0, n + 1)), ...also },
  })
  const ends = lossesMax > 0 ? ["canceled", "end_turn", "lost"] : ["canceled", "end_turn"]
  const all: Step[] = [
    {
      name: "create",
      act: (talk) => talk.call("session.create", { name, network: { mode: "none" }, env }),
      after: { [`session:${name}`]: session(name, ["running"]) },
    },
    {
      name: "start the agent",
      act: (talk) => talk.call("agent.start", { session: name, spec: { adapter: "scripted" } }),
      after: { agent: hasAgent(name, true) },
    },
    ...[0, 1, 2].map((n) => prompt(n, script)),
    { name: "answers", act: (talk) => settled(talk, name), after: { answers: answered(name, wanted, lossesMax) } },
    ...[3, 4].map((n) => prompt(n, longScript, { answers: answered(name, wanted, lossesMax, unwanted) })),
    {
      name: "abort",
      act: async (talk) => {
        await begun(talk, name, unwanted[0])
        await talk.call("agent.abort", { session: name, queued: true })
        await settled(talk, name)
      },
      isRepeated: true,
      after: { unwanted: endedAs(name, unwanted, ends) },
    },
    { name: "look", act: async (talk) => look?.(talk, name), after: {} },
    {
      name: "delete",
      act: (talk) => talk.call("session.delete", { id: name }),
      after: { [`session:${name}`]: noSession(name), ...nothingSaid },
    },
  ]
  const first = {
    [`session:${name}`]: noSession(name),
    ...nothingSaid,
    agent: hasAgent(name, false),
  }
  return { name: "agent", first, steps: all }
}

async function settled(talk: Talk, name: string): Promise<void> {
  for (;;) {
    const { prompts, status } = await talk.call("agent.get", { session: name })
    if (prompts.length === 0 && status === "idle") return
    await pause(lookAgainMs)
  }
}

/** Until it is being answered, or has been: what was passed on the way to it is the same each time. */
async function begun(talk: Talk, name: string, id: string | undefined): Promise<void> {
  while (!(await messagesOf(talk, name)).some(({ role, promptId }) => role === "assistant" && promptId === id))
    await pause(lookAgainMs)
}

/** A session without one says so, and so does one that is not there. */
function hasAgent(name: string, isThere: boolean): Fact {
  return async (talk) => {
    const found = await talk.call("agent.get", { session: name }).catch(unlessNone)
    return (found !== undefined) === isThere ? undefined : found ? "it has an agent" : "it has no agent"
  }
}

function unlessNone(failure: unknown): undefined {
  if (Fault.from(failure).code !== "not_found") throw failure
}

async function messagesOf(talk: Talk, name: string): Promise<Message[]> {
  const [channel] = (await talk.call("agent.get", { session: name }).catch(unlessNone))?.channels ?? []
  return channel ? (await talk.call("chat.messages", { id: channel.chatId, limit: 200 })).items : []
}

/** That these were said, each once and in this order. */
function said(name: string, ids: readonly string[]): Fact {
  return async (talk) => {
    const found = (await messagesOf(talk, name)).filter(({ role }) => role === "user").map(({ id }) => id)
    return found.join() === ids.join() ? undefined : `${found.length} were said: ${found.join()}, not ${ids.join()}`
  }
}

/** Each has one end, with one of these reasons. In which order they end is nobody's promise. */
function endedAs(name: string, ids: readonly string[], reasons: readonly string[]): Fact {
  return async (talk) => {
    const all = await messagesOf(talk, name)
    const ends = ids.map((id) => all.filter(({ role, promptId }) => role === "assistant" && promptId === id))
    const wrong = ends.find((some) => some.length !== 1 || !reasons.includes(some[0]?.reason ?? ""))
    return wrong && `one that nobody wanted has the ends ${wrong.map(({ reason }) => reason).join()}`
  }
}

/** One answer to each, in order: whole, or a beginning with the reason why. What is said to `others` is looked at elsewhere. */
function answered(name: string, ids: readonly string[], lossesMax: number, others: readonly string[] = []): Fact {
  return async (talk) => {
    const all = (await messagesOf(talk, name)).filter(({ role }) => role === "assistant")
    const answers = all.filter(({ promptId }) => !others.includes(promptId ?? ""))
    const order = answers.map(({ promptId }) => promptId)
    if (order.join() !== ids.join()) return `answered were ${order.join()}, not ${ids.join()}`
    const wrong = answers.map(flawOf).find((flaw) => flaw !== undefined)
    if (wrong !== undefined) return wrong
    const lost = answers.filter(({ reason }) => reason !== "end_turn")
    return lost.length <= lossesMax
      ? undefined
      : `${lost.length} turns ended as ${lost.map(({ reason }) => reason).join()}`
  }
}

function flawOf({ parts, state, reason }: Message): string | undefined {
  const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("")
  if (state !== "final") return `an answer is ${state}`
  const isRight = reason === "end_turn" ? text === words + end : (words + end).startsWith(text)
  return isRight ? undefined : `an answer that ended as ${reason} says ${JSON.stringify(text)}`
}
