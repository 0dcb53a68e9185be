import { z } from "zod"
import { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { ChannelKey, promptCharsMax } from "@warren/protocol/hub/words.ts"
import { awaitAnswer } from "../agent-answer.ts"
import { feedLimits, readFeed } from "../feed-page.ts"
import { facts, given, sessionField, tool } from "../tool.ts"

const channel = ChannelKey.optional().meta({ description: "Which of its conversations; the usual one unless said." })

const start = tool({
  name: "start_agent",
  title: "Start an agent",
  doc: "Give a session an agent; another one than before replaces it. It is ready when this answers. Talk to it with prompt_agent.",
  kind: "runs",
  in: z.object({ session: sessionField, spec: AgentSpec }),
  async run(input, { asking }) {
    return facts({ agent: await asking.call("agent.start", input) })
  },
})

const prompt = tool({
  name: "prompt_agent",
  title: "Prompt an agent",
  doc: "Say something to the agent of a session and wait for what it answers, or for a question of its own. What takes longer than `waitMs` goes on: follow it with read_feed.",
  kind: "runs",
  in: z.object({
    session: sessionField,
    text: z.string().min(1).max(promptCharsMax),
    mode: z.enum(["followup", "steer", "collect"]).optional().meta({ description: "`steer` aborts what it does now." }),
    channel,
    waitMs: z.int().min(0).max(3600_000).default(45_000).meta({ description: "0: only hand it over." }),
  }),
  async run({ waitMs, ...input }, bench) {
    const { feedSeq } = await bench.asking.call("agent.get", { session: input.session })
    const queued = await bench.asking.call("agent.prompt", given(input) as typeof input)
    if (waitMs === 0) return facts({ prompt: queued, next: feedSeq })
    return awaitAnswer({ session: input.session, messageId: queued.messageId, after: feedSeq, waitMs }, bench)
  },
})

const answer = tool({
  name: "answer_agent",
  title: "Answer an agent",
  doc: "Answer a question the agent has asked.",
  kind: "runs",
  in: z.object({ session: sessionField, questionId: z.string().max(128), answer: z.string().max(promptCharsMax) }),
  async run(input, { asking }) {
    return facts(await asking.call("agent.answer", input))
  },
})

const get = tool({
  name: "get_agent",
  title: "Read an agent's state",
  doc: "The agent of a session as it is now: what it does, what waits for it, what it asks.",
  kind: "reads",
  in: z.object({ session: sessionField }),
  async run(input, { asking }) {
    return facts({ agent: await asking.call("agent.get", input) })
  },
})

const abort = tool({
  name: "abort_agent",
  title: "Abort an agent's work",
  doc: "End what the agent does now; with `queued` also what waits. The next prompt works.",
  kind: "changes",
  in: z.object({ session: sessionField, queued: z.boolean().default(false) }),
  async run(input, { asking }) {
    return facts(await asking.call("agent.abort", input))
  },
})

const stop = tool({
  name: "stop_agent",
  title: "Stop an agent",
  doc: "End the agent of a session. What was said stays.",
  kind: "changes",
  in: z.object({ session: sessionField }),
  async run(input, { asking }) {
    return facts(await asking.call("agent.stop", input))
  },
})

const feed = tool({
  name: "read_feed",
  title: "Read an agent's feed",
  doc: "What happened with the agent of a session after number `after`: messages, tools, questions, its state. With `waitMs` it waits for something to happen. Go on with the `next` of the answer.",
  kind: "reads",
  in: z.object({
    session: sessionField,
    after: z.int().min(0).default(0),
    limit: z.int().min(1).max(feedLimits.itemsMax).default(100),
    waitMs: z.int().min(0).max(60_000).default(0),
  }),
  async run(input, { asking }) {
    return facts({ ...(await readFeed(input, asking)) })
  },
})

export const agentTools = [start, prompt, answer, get, abort, stop, feed]
