import { createReadStream } from "node:fs"
import { ScriptedLlm } from "@warren/agents/testing/llm/scripted-llm.ts"
import { dueStep, prompted, type Asked, type Step } from "@warren/agents/testing/llm/step.ts"
import { Scope } from "@warren/base/scope.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Home } from "../runner/home.ts"
import { Runner } from "../runner/runner.ts"
import { programs } from "./programs.ts"

/** Other people's agents in a real sandbox, driven through a runner; the model is ours, the key never leaves the runner. */
const slowMs = 120_000
const openaiKey = "sk-real-KEY-51d0aa-openai"
const anthropicKey = "sk-real-KEY-51d0aa-anthropic"
const folder = "/home/user/project"
const failures: Readonly<Record<string, Step>> = {
  limited: { status: 429, message: "slow down" },
  locked: { status: 401, message: "who are you" },
  broke: { status: 402, message: "pay first" },
  slow: { hang: true },
}
const models = [...Object.keys(failures), "good"].map((name) => `openai/${name}`)
const isFailing = ({ prompt, hasTools }: Asked): boolean => hasTools && prompt.includes("whoever can")

const scope = new Scope()
let llm: ScriptedLlm
let runner: Runner
let session: string

beforeAll(async () => {
  llm = scope.use(await ScriptedLlm.listen((asked) => (isFailing(asked) && failures[asked.model]) || dueStep(asked)))
  const home = scope.use(new Home())
  runner = scope.use(await Runner.start(home, { WARREN_OPENAI_URL: llm.url, WARREN_ANTHROPIC_URL: llm.url }))
  const { talk } = runner
  await talk.call("secrets.set", { name: "OPENAI_API_KEY", value: openaiKey })
  await talk.call("secrets.set", { name: "ANTHROPIC_API_KEY", value: anthropicKey })
  const keys = [{ scope: "llm:openai" as const }, { scope: "llm:anthropic" as const }]
  const limits = { memoryBytes: 2 * 2 ** 30 }
  session = (await talk.call("session.create", { keys, limits })).id
  scope.defer(async () => void (await talk.call("session.delete", { id: session })))
  for (const [name, path] of Object.entries(programs)) await install(name, path)
}, slowMs)
afterAll(() => scope.close(), slowMs)

/** As a person would copy it in. */
async function install(name: string, path: string): Promise<void> {
  const { talk } = runner
  await using writing = await talk.open("file.write", { session, path: `/home/user/bin/${name}`, parents: true })
  for await (const piece of createReadStream(path, { highWaterMark: 192 * 1024 })) await writing.write(piece as Buffer)
  writing.send({ op: "eof" })
  await writing.next()
  await talk.run(session, `chmod 755 /home/user/bin/${name}`)
}

/** A project with a mistake in it. */
async function project(): Promise<void> {
  await runner.talk.run(
    session,
    `rm -rf ${folder}; mkdir -p ${folder}; cd ${folder}; git init -q
printf 'export const add = (a, b) => a - b\\n' > add.mjs
printf 'import { add } from "./add.mjs"\\nif (add(2, 3) !== 5) process.exit(1)\\nconsole.log("ok 1")\\n' > test.mjs
git add -A; git -c user.name=a -c user.email=a@b commit -qm first`,
  )
}

async function turn(text: string) {
  const { messageId } = await runner.talk.call("agent.prompt", { session, text })
  return told((item) => item.type === "prompt" && item.prompt.messageId === messageId && item.prompt.state === "done")
}

type Item = Awaited<ReturnType<typeof feed>> extends AsyncIterable<{ item: infer T }> ? T : never
const feed = () => runner.talk.feed("session.feed", { id: session, after })
let after = 0

/** Everything that is new, up to the first that fits. */
async function told(fits: (item: Item) => boolean): Promise<Item[]> {
  const items: Item[] = []
  for await (const { seq, item } of feed()) {
    items.push(item)
    after = seq
    if (fits(item)) break
  }
  return items
}

const textIn = (items: readonly Item[]): string =>
  items.map((item) => (item.type === "message.part.text-delta" && item.part === "text" ? item.delta : "")).join("")

function toolsIn(items: readonly Item[]): string[] {
  return items.flatMap((item) =>
    item.type === "message.part.tool-update" && item.part.type === "tool"
      ? [`${item.part.tool} ${item.part.status}`]
      : [],
  )
}

/** The work of both agents is the same: read, mend, try, answer. */
async function expectMended(items: readonly Item[], names: readonly string[]): Promise<void> {
  const done = names.map((name) => `${name} completed`)
  expect(toolsIn(items).filter((tool) => /completed|error/.test(tool))).toEqual(done)
  for (const name of names) expect(toolsIn(items)).toContain(`${name} running`)
  expect(items.filter(({ type }) => type === "message.part.text-delta").length).toBeGreaterThan(1)
  expect(textIn(items)).toBe("It was a minus. Now the test passes.")
  expect(items.filter(({ type }) => type === "message.finalize")).toHaveLength(1)
  expect(JSON.stringify(items)).toContain("ok 1")
  const diff = await runner.talk.run(session, `cd ${folder}; git diff -U0 | tail -n 2; git status --short`)
  expect(diff.text).toBe("-export const add = (a, b) => a - b\n+export const add = (a, b) => a + b\n M add.mjs\n")
}

/** Nowhere: not in anybody's environment, arguments or files. The lease is in environments alone. */
async function expectNoKey(): Promise<void> {
  // Written so that it does not find itself.
  const look = `cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c 'KEY-51d0a[a]'
grep -rIl 'KEY-51d0a[a]' /home/user /tmp /run /etc 2>/dev/null | wc -l
grep -rIl 'lease_' /home/user/project /tmp/.warren /home/user/.config /home/user/.claude* 2>/dev/null | wc -l`
  expect((await runner.talk.run(session, look)).text).toBe("0\n0\n0\n")
}

const read = { openCode: { filePath: `${folder}/add.mjs` }, claude: { file_path: `${folder}/add.mjs` } }
const strings = { from: "a - b", to: "a + b" }
const answer: Step = { text: "It was a minus. Now the test passes.", pieces: 6 }
const tryIt = { command: `cd ${folder} && node test.mjs`, description: "runs the test" }

const openCode = {
  ...{ adapter: "opencode" as const, cmd: "/home/user/bin/opencode", cwd: folder, models, silenceMs: 10_000 },
}

describe("in a sandbox", () => {
  test(
    "OpenCode reads, mends, tries and answers; the key is never inside",
    async () => {
      await project()
      expect(await runner.talk.call("agent.start", { session, spec: openCode })).toMatchObject({
        adapter: "opencode",
        isConnected: true,
        models,
      })
      const edit = { ...read.openCode, oldString: strings.from, newString: strings.to }
      const items = await turn(
        prompted(
          { tool: "read", args: read.openCode },
          { tool: "edit", args: edit },
          { tool: "bash", args: tryIt },
          answer,
        ),
      )
      await expectMended(items, ["read", "edit", "bash"])
      expect(new Set(llm.asked.map(({ key }) => key))).toEqual(new Set([openaiKey]))
      await expectNoKey()
    },
    slowMs,
  )

  test(
    "OpenCode goes along the models when they fail, each once, and that is seen",
    async () => {
      const before = llm.turns.length
      const items = await turn("Do it, whoever can.")
      const switched = items.flatMap((item) => (item.type === "model.switched" ? [`${item.to} ${item.cause}`] : []))
      expect(switched).toEqual([
        ...["openai/locked rate_limit", "openai/broke auth", "openai/slow billing", "openai/good timeout"],
      ])
      expect(llm.turns.slice(before).map(({ model }) => `openai/${model}`)).toEqual(models)
      expect(textIn(items)).toBe("You said: Do it, whoever can.")
      expect(items.filter(({ type }) => type === "message.finalize")).toHaveLength(1)
    },
    slowMs,
  )

  test(
    "OpenCode is aborted in the middle of a tool: all of it stops, and the next prompt works",
    async () => {
      const command = "sleep 4242 & sleep 4242 | cat"
      const text = prompted({ tool: "bash", args: { command, description: "sleeps" } }, { text: "slept" })
      const { messageId } = await runner.talk.call("agent.prompt", { session, text })
      await told(
        (item) => item.type === "message.part.tool-update" && "status" in item.part && item.part.status === "running",
      )
      await runner.talk.run(session, "until [ $(pgrep -fc '^sleep 4242') = 2 ]; do sleep 0.05; done")
      const { aborted } = await runner.talk.call("agent.abort", { session })
      expect(aborted).toEqual([messageId])
      const items = await told((item) => item.type === "message.finalize")
      expect(items.at(-1)).toMatchObject({ message: { reason: "canceled" } })
      await runner.talk.run(session, "while pgrep -f '^sleep 4242'; do sleep 0.05; done")
      await told((item) => item.type === "prompt" && item.prompt.state === "done")
      expect(textIn(await turn("Are you there?"))).toBe("You said: Are you there?")
    },
    slowMs,
  )

  test(
    "OpenCode takes another configuration without being replaced, and starts again only when it is another",
    async () => {
      const pids = async (): Promise<string[]> =>
        (
          await runner.talk.run(session, "pgrep -f '^node /tmp/.warren.* --bootstrap'; pgrep -f '[b]in/opencode serve'")
        ).text.split("\n")
      const [supervisor, first] = await pids()
      const spec = { ...openCode, instructions: "Be brief." }
      await runner.talk.call("agent.start", { session, spec })
      // It waits for the change; what it says is by the new one.
      expect(textIn(await turn("Brief?"))).toBe("You said: Brief?")
      const [same, second] = await pids()
      expect(same).toBe(supervisor)
      expect(second).not.toBe(first)
      await runner.talk.call("agent.start", { session, spec: { ...spec, silenceMs: 9_000 } })
      expect(textIn(await turn("Still?"))).toBe("You said: Still?")
      expect(await pids()).toEqual([supervisor, second, ""])
    },
    slowMs,
  )

  test(
    "Claude Code does the same work, and its key is not inside either",
    async () => {
      await project()
      const spec = { adapter: "command", cmd: "/home/user/bin/claude", cwd: folder, speaks: "claude" } as const
      await runner.talk.call("agent.start", { session, spec })
      const edit = { ...read.claude, old_string: strings.from, new_string: strings.to }
      const items = await turn(
        prompted(
          { tool: "Read", args: read.claude },
          { tool: "Edit", args: edit },
          { tool: "Bash", args: tryIt },
          answer,
        ),
      )
      await expectMended(items, ["Read", "Edit", "Bash"])
      expect(new Set(llm.asked.flatMap(({ wire, key }) => (wire === "messages" ? [key] : [])))).toEqual(
        new Set([anthropicKey]),
      )
      await expectNoKey()
    },
    slowMs,
  )
})
