import { setTimeout as pause } from "node:timers/promises"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Answer } from "@warren/protocol/contract.ts"
import type { Plane, Talk } from "../runner/talk.ts"
import { noSession, session } from "./facts.ts"
import type { Chapter, Fact, Step } from "./story.ts"

type Message = Answer<Plane, "chat.messages">["items"][number]

const words = "The quick brown fox jumps over the lazy dog. ".repeat(2)
const end = "The end."
const steps = [
  { text: words, pieces: 6, delayMs: 2 },
  { tool: "look", result: "seen" },
  { text: end, pieces: 2 },
]
const script = `[[script:${JSON.stringify({ steps })}]]`
const lookAgainMs = 20
const anything: Fact = async () => undefined

interface Hardship {
  /** For the supervisor, which is in the sandbox. */
  readonly env: Readonly<Record<string, string>>
  /** Turns that may end otherwise than the agent ended them. */
  readonly lossesMax: number
}

/** An agent, and three things said to it. Names begin with `p`. */
export function agentChapter(p: string, { env, lossesMax }: Hardship): Chapter {
  const name = `${p}g`
  const ids = [newId("msg"), newId("msg"), newId("msg")]
  const prompt = (n: number): Step => ({
    name: `prompt ${n + 1}`,
    act: (talk) => talk.call("agent.prompt", { session: name, text: script, messageId: ids[n] }),
    // The same words with the same id are the same prompt.
    isRepeated: true,
    after: { said: said(name, ids.slice(0, n + 1)) },
  })
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
    prompt(0),
    prompt(1),
    prompt(2),
    { name: "answers", act: (talk) => settled(talk, name), after: { answers: answered(name, ids, lossesMax) } },
    {
      name: "delete",
      act: (talk) => talk.call("session.delete", { id: name }),
      after: { [`session:${name}`]: noSession(name), agent: anything, said: anything, answers: anything },
      between: { [`session:${name}`]: session(name, ["stopped"]) },
    },
  ]
  const first = {
    [`session:${name}`]: noSession(name),
    agent: hasAgent(name, false),
    said: anything,
    answers: anything,
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

/** One answer to each, in order: whole, or a beginning with the reason why. */
function answered(name: string, ids: readonly string[], lossesMax: number): Fact {
  return async (talk) => {
    const answers = (await messagesOf(talk, name)).filter(({ role }) => role === "assistant")
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
