import { Fault } from "@warren/base/fault.ts"
import { load } from "@warren/base/settings.ts"
import type { Answer, Asked } from "@warren/protocol/contract.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"
import { flag } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { attachFiles } from "../chat/attach-files.ts"
import { Attached } from "../chat/attached.ts"
import { FullScreen } from "../chat/full-screen.ts"
import { answerOf, questionLines } from "../chat/lines.ts"
import { urlIn } from "../control/address.ts"
import { FarWarren, type Asking } from "../control/far-warren.ts"
import { withRunner, type Desk } from "../desk.ts"
import type { Runner } from "../runner/runner.ts"
import { settings } from "../settings.ts"
import { record } from "../terminal/table.ts"
import { verb } from "../verb.ts"
import { agentFlags, hasSteps, keysFor, startOf, withKeys } from "./agent-wishes.ts"
import { showSteps } from "./provision-steps.ts"
import { given, wishesOf, wishFlags } from "./wishes.ts"

type Agent = Answer<typeof userPlane, "agent.get">
type Prompt = Asked<typeof userPlane, "agent.prompt">

const session = word.one("SESSION", "Id or name of the session.", { completes: "session" })
const usualChannel = "web:default"
const channel = flag.text("CHANNEL", "Which conversation (`web:default`).")
const detach = flag.on("Do not wait for the answer.", { short: "d" })
const attachFlag = flag.list("FILE", "A file that goes along.", { completes: "file" })

const start = verb({
  name: "agent start",
  group: "Agents",
  doc: "Give an agent a session, a repository and something to do, and watch it. Ctrl-C aborts what it does.",
  examples: [
    "warren agent start 'Who are you?'",
    "warren agent start --repo acme/widgets --branch fix-login --agent opencode 'Fix the login'",
  ],
  flags: {
    ...agentFlags,
    ...wishFlags,
    session: flag.text("SESSION", "One that is there, instead of a new one.", { completes: "session" }),
    attach: attachFlag,
    detach,
  },
  words: { prompt: word.optional("PROMPT", "What it is to do.") },
  run: ({ flags, words }, desk) =>
    withRunner(desk, async (runner) => {
      const wished = await startOf(flags, "")
      const keys = await keysFor(runner, wished)
      const made = await sessionFor(runner, desk, flags, keys)
      desk.output.note(`Session ${made.name}`)
      const begin = () => runner.call("agent.start", { ...wished, session: made.id })
      const agent = await (hasSteps(wished) ? showSteps(runner, desk, made.id, begin) : begin())
      if (words.prompt === undefined) {
        if (desk.terminal.isInteractive && !flags.detach)
          return chat(runner, desk, { session: made.name, isFull: false })
        await desk.output.show({ session: made.name, agent }, () => made.name)
        return 0
      }
      const said = { text: words.prompt, channel: usualChannel }
      return say(runner, desk, { session: made.name, files: flags.attach, isDetached: flags.detach, said })
    }),
})

const prompt = verb({
  name: "agent prompt",
  group: "Agents",
  doc: "Say something to the agent of a session, and print its answer. Ctrl-C aborts it.",
  examples: [
    "warren agent prompt my-session 'Now run the tests'",
    "warren agent prompt my-session --mode steer 'Stop, do this'",
  ],
  flags: {
    channel,
    mode: flag.choice(["followup", "steer", "collect"], "Wait for its turn, come first, or wait for more."),
    model: flag.text("MODEL", "Which model, where the agent has several."),
    attach: attachFlag,
    detach,
  },
  words: { session, text: word.some("TEXT", "What to say.") },
  run: ({ flags, words }, desk) =>
    withRunner(desk, (runner) => {
      const { mode, model } = flags
      const said = { text: words.text.join(" "), channel: flags.channel ?? usualChannel, ...given({ mode, model }) }
      return say(runner, desk, { session: words.session, files: flags.attach, isDetached: flags.detach, said })
    }),
})

const answer = verb({
  name: "agent answer",
  group: "Agents",
  doc: "Answer what the agent of a session asks, by the number of an option or in words.",
  examples: ["warren agent answer my-session 1", "warren agent answer my-session 'Use the second file'"],
  flags: { question: flag.text("ID", "Which question; the oldest unless said.") },
  words: { session, answer: word.some("ANSWER", "A number, or words.") },
  run: ({ flags, words }, desk) =>
    withRunner(desk, async (runner) => {
      const { questions } = await runner.call("agent.get", { session: words.session })
      const asked = flags.question === undefined ? questions[0] : questions.find(({ id }) => id === flags.question)
      if (!asked) throw new Fault("not_found", "nothing is asked", { hint: `warren agent status ${words.session}` })
      const said = answerOf(asked, words.answer.join(" "))
      await runner.call("agent.answer", { session: words.session, questionId: asked.id, answer: said })
      await desk.output.show({ questionId: asked.id, answer: said }, () => `${asked.text} ${said}`)
    }),
})

const abort = verb({
  name: "agent abort",
  group: "Agents",
  doc: "End what the agent of a session does now.",
  examples: ["warren agent abort my-session", "warren agent abort my-session --queued"],
  flags: { queued: flag.on("Also what waits.") },
  words: { session },
  async run({ flags, words }, desk) {
    const ended = await withRunner(desk, (runner) =>
      runner.call("agent.abort", { session: words.session, queued: flags.queued }),
    )
    await desk.output.show(ended, () => (ended.aborted.length === 0 ? "It was doing nothing." : "Aborted."))
  },
})

const status = verb({
  name: "agent status",
  group: "Agents",
  doc: "How the agent of a session is, what waits for it, and what it asks.",
  examples: ["warren agent status my-session"],
  flags: {},
  words: { session },
  async run({ words }, desk) {
    const agent = await withRunner(desk, (runner) => runner.call("agent.get", { session: words.session }))
    await desk.output.show(agent, () => aboutAgent(agent, desk))
  },
})

const stop = verb({
  name: "agent stop",
  group: "Agents",
  doc: "End the agent of a session; what was said stays, and the next prompt starts it again.",
  examples: ["warren agent stop my-session"],
  flags: {},
  words: { session },
  async run({ words }, desk) {
    const ended = await withRunner(desk, (runner) => runner.call("agent.stop", { session: words.session }))
    await desk.output.show(ended, () => "Stopped.")
  },
})

const attach = verb({
  name: "attach",
  group: "Agents",
  doc: "Chat with the agent of a session: its words as they come, its tools, its questions. A number answers one; Ctrl-C aborts, and leaves when there is nothing to abort.",
  examples: [
    "warren attach my-session",
    "warren attach my-session --tui",
    "WARREN_TOKEN=wrn_… warren attach my-session --url https://warren.example",
    "echo 'Run the tests' | warren attach my-session",
  ],
  flags: {
    tui: flag.on("On the whole screen."),
    channel,
    url: flag.text("URL", "Of a Warren somewhere else, with the token in WARREN_TOKEN (or WARREN_URL says)."),
  },
  words: { session },
  run: ({ flags, words }, desk) => {
    const chatting = { session: words.session, isFull: flags.tui, ...given({ channel: flags.channel }) }
    const { url, token } = load(settings, desk.terminal.env)
    const asked = flags.url ?? (url === "" ? undefined : url)
    if (asked === undefined) return withRunner(desk, (runner) => chat(runner, desk, chatting))
    return chat(new FarWarren(urlIn(asked), token, desk.signal), desk, chatting)
  },
})

export const agentVerbs = [start, prompt, answer, abort, status, stop, attach]

interface Saying {
  readonly session: string
  readonly files: readonly string[]
  readonly isDetached: boolean
  readonly said: Omit<Prompt, "session" | "attachments"> & { channel: string }
}

async function say(runner: Runner, desk: Desk, { session: which, files, isDetached, said }: Saying): Promise<number> {
  const attachments = await attachFiles(runner, which, files)
  const attached = await Attached.open({ runner, desk, session: which, channel: said.channel })
  const wishes = attachments.length > 0 ? { attachments } : {}
  const taken = await runner.call("agent.prompt", { session: which, ...said, ...wishes })
  if (!isDetached) return attached.untilDone(taken.messageId)
  await desk.output.show(taken, () => taken.messageId)
  return 0
}

interface Chatting {
  readonly session: string
  readonly isFull: boolean
  readonly channel?: string
}

async function chat(
  runner: Asking,
  desk: Desk,
  { session: which, isFull, channel: to = usualChannel }: Chatting,
): Promise<number> {
  const parts = { runner, desk, session: which, channel: to }
  return isFull ? (await FullScreen.open(parts)).stay() : (await Attached.open(parts)).stay()
}

type Session = Answer<typeof userPlane, "session.get">

/** A new one that may use what the agent needs, or one that is there and may from now on. */
async function sessionFor(
  runner: Runner,
  desk: Desk,
  flags: Parameters<typeof wishesOf>[0] & { readonly session?: string | undefined },
  keys: Session["keys"],
): Promise<Session> {
  if (flags.session === undefined) {
    const wishes = await wishesOf(flags, desk)
    return runner.call("session.create", { ...wishes, keys: withKeys((wishes.keys ?? []) as Session["keys"], keys) })
  }
  const found = await runner.call("session.get", { id: flags.session })
  const wanted = withKeys(found.keys, keys)
  return wanted.length === found.keys.length ? found : runner.call("session.update", { id: found.id, keys: wanted })
}

function aboutAgent(agent: Agent, { output }: Desk): string {
  const { provisioned: found } = agent
  const about = record({
    agent: agent.adapter,
    status: agent.detail === undefined ? agent.status : `${agent.status}: ${agent.detail}`,
    connected: agent.isConnected ? "yes" : "no",
    ...(found?.folder === undefined
      ? {}
      : { repository: `${found.folder}${found.branch ? ` (${found.branch})` : ""}` }),
    ...(agent.models.length === 0 ? {} : { models: agent.models.join(", ") }),
    prompts: agent.prompts.map(({ state, messageId }) => `${messageId} ${state}`).join(", ") || "none",
  })
  return [about, ...agent.questions.flatMap((question) => questionLines(question, output))].join("\n")
}
