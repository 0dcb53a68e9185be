import { createReadStream } from "node:fs"
import { ScriptedLlm } from "@warren/agents/testing/llm/scripted-llm.ts"
import { dueStep, prompted } from "@warren/agents/testing/llm/step.ts"
import { Scope } from "@warren/base/scope.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { programs } from "../agents/programs.ts"
import { Warren } from "../warren.ts"
import { barriers } from "./accessible.ts"
import { Chromium, printedLink, type Person } from "./browser.ts"
import { devPort, devServer } from "./dev-server.ts"

/** A loaded machine is no fault of the page. */
const patienceMs = 120_000
const slowMs = 480_000
const key = "sk-real-KEY-77f1c0-openai"
const project = `cd /workspace && git init -q -b main . && echo bin > .gitignore &&
printf 'export const add = (a, b) => a - b\\n' > add.mjs &&
printf 'import { add } from "./add.mjs"\\nif (add(2, 3) !== 5) process.exit(1)\\nconsole.log("ok 1")\\n' > test.mjs &&
git add -A && git -c user.name=a -c user.email=a@b commit -qm first`

const scope = new Scope()
let llm: ScriptedLlm
let warren: Warren
let chromium: Chromium
let one: Person
/** Of the session it begins with. */
let name = ""

beforeAll(async () => {
  llm = scope.use(await ScriptedLlm.listen(dueStep))
  warren = scope.use(await Warren.start(undefined, { WARREN_OPENAI_URL: llm.url }))
  chromium = scope.use(await Chromium.open())
  one = await chromium.person()
  one.page.setDefaultTimeout(patienceMs)
  await one.page.goto(printedLink(warren.said))
  await one.page.getByRole("heading", { name: /Welcome/ }).waitFor()
  await workspace()
}, slowMs)
afterAll(() => scope.close(), 120_000)

async function ask(path: string, body: object | string): Promise<Response> {
  const headers = { authorization: `Bearer ${await warren.token()}`, "content-type": "application/json" }
  const sent = typeof body === "string" ? createReadStream(body) : JSON.stringify(body)
  const how = { method: typeof body === "string" ? "PUT" : "POST", headers, body: sent, duplex: "half" }
  const answer = await fetch(`http://127.0.0.1:${warren.port}${path}`, how as unknown as RequestInit)
  expect(answer.ok, `${path}: ${answer.ok ? "" : await answer.text()}`).toBe(true)
  return answer
}

/** A folder with a project that has a mistake in it, and the program as its makers ship it. */
async function workspace(): Promise<void> {
  await ask("/v1/workspaces", { name: "calculator" })
  await ask("/v1/workspaces/calculator/folders", { path: "bin" })
  await ask("/v1/workspaces/calculator/content?path=bin/opencode&mode=493", programs.opencode)
  await ask("/v1/sessions", { name: "maker", workspace: "calculator" })
  await ask("/v1/sessions/maker/exec", { cmd: project })
  await fetch(`http://127.0.0.1:${warren.port}/v1/sessions/maker`, {
    ...{ method: "DELETE", headers: { authorization: `Bearer ${await warren.token()}` } },
  })
}

const origin = (): string => `http://localhost:${warren.port}`
const said = (): ReturnType<Person["page"]["locator"]> => one.page.locator('[data-role="assistant"]')
const rows = ({ page }: Person): ReturnType<Person["page"]["locator"]> => page.locator(".xterm-rows")
const state = (): ReturnType<Person["page"]["locator"]> => one.page.locator(".session-head .state-line")

/** Replaces what stands in the editor, and saves it. */
async function edit({ page }: Person, text: string): Promise<void> {
  await page.getByRole("textbox", { name: /^Text of/ }).click()
  await page.keyboard.press("Control+a")
  await page.keyboard.type(text)
  await page.keyboard.press("Control+s")
  await page.getByRole("button", { name: "Saved" }).waitFor()
}

async function write(text: string): Promise<void> {
  await one.page.getByRole("textbox", { name: "Reply to the agent" }).fill(text)
  await one.page.keyboard.press("Enter")
}

async function seen(shot: string): Promise<void> {
  await one.shot(shot)
  expect(await barriers(one.page), shot).toEqual([])
}

describe("from the printed link to a session that was slept, woken and forked", { timeout: slowMs }, () => {
  test("an empty sandbox: a file that is edited on the page is there in the terminal", async () => {
    const { page } = one
    await page.getByRole("button", { name: /Empty sandbox/ }).click()
    await page.waitForURL(/\/s\/[\w-]+\/terminal$/)
    await rows(one).getByText("$").first().waitFor()
    name = new URL(page.url()).pathname.split("/")[2] ?? ""
    await page.keyboard.type("cd; echo Hello > greeting.txt; pwd\n")
    await rows(one).getByText("/home/user", { exact: true }).first().waitFor()
    await page.getByRole("tab", { name: "Files", exact: true }).click()
    await page.getByRole("button", { name: "greeting.txt", exact: true }).click()
    await edit(one, "Good morning")
    await page.getByRole("tab", { name: "Terminal", exact: true }).click()
    await page.locator(".xterm-helper-textarea").focus()
    await page.keyboard.type("cat greeting.txt\n")
    await rows(one).getByText("Good morning").first().waitFor()
  })

  test("a dev server in its preview: what another browser saves is there without a reload, by its WebSocket", async () => {
    const { page } = one
    await ask(`/v1/sessions/${name}/exec`, { argv: ["sh", "-c", 'printf %s "$0" > ~/dev.cjs', devServer] })
    await page.keyboard.type("node ~/dev.cjs &\n")
    await rows(one).getByText("dev server ready").first().waitFor()
    await using two = await chromium.person({ storageState: await one.cookies })
    two.page.setDefaultTimeout(patienceMs)
    await two.page.goto(`${origin()}/s/${name}/preview`)
    await two.page.getByRole("spinbutton", { name: "Port" }).fill(String(devPort))
    await two.page.getByRole("button", { name: "Show" }).click()
    await two.page.getByRole("link", { name: "they are shown right here" }).click()
    await two.page.waitForURL(/^http:\/\/warren\.localhost/)
    const preview = two.page.frameLocator("iframe")
    await preview.getByRole("heading", { name: "Good morning" }).waitFor()
    await preview.getByText("connected").waitFor()
    await page.getByRole("tab", { name: "Files", exact: true }).click()
    await page.getByRole("button", { name: "greeting.txt", exact: true }).click()
    await edit(one, "Good evening")
    await preview.getByRole("heading", { name: "Good evening" }).waitFor()
    await preview.getByText("change 1").waitFor()
    await two.shot("hot-reload")
    expect(two.complaints).toEqual([])
  })

  test("the demo agent: a question is answered with its button, and what hangs is stopped with another", async () => {
    const { page } = one
    await page.getByRole("button", { name: "Start an agent" }).click()
    await seen("start-agent")
    await page.getByRole("dialog").getByRole("button", { name: "Start", exact: true }).click()
    await page.getByRole("heading", { name: "A scripted agent is here" }).waitFor()
    await seen("chat-empty")
    await write(
      `Well? [[script:${JSON.stringify({ steps: [{ question: "Which way?", options: ["Left", "Right"] }] })}]]`,
    )
    await page.getByRole("button", { name: "1 Left" }).click()
    await said().getByText("Answer: Left").waitFor()
    await write(`[[script:${JSON.stringify({ steps: [{ text: "I begin." }, { hang: true }] })}]]`)
    await said().getByText("I begin.").waitFor()
    await page.getByRole("button", { name: "Stop" }).click()
    await page.locator(".ending", { hasText: "stopped" }).waitFor()
  })

  test("it sleeps, looks so when one comes back, wakes by a button; its fork has the files", async () => {
    const { page } = one
    await page.getByRole("button", { name: "Actions", exact: true }).click()
    await page.getByRole("menuitem", { name: "Hibernate" }).click()
    await state().getByText("asleep").waitFor()
    await page.goto(origin())
    await page
      .getByRole("navigation", { name: "Sessions" })
      .getByRole("link", { name: new RegExp(name) })
      .click()
    await page.getByRole("button", { name: "Wake it" }).click()
    await page.getByText(/woke in \d/).waitFor()
    await page.getByRole("tab", { name: "Terminal", exact: true }).click()
    await rows(one).getByText("$").first().waitFor()
    await page.getByRole("button", { name: "Actions", exact: true }).click()
    await page.getByRole("menuitem", { name: "Fork…" }).click()
    await page.getByRole("button", { name: "Fork", exact: true }).click()
    await page.waitForURL((url) => url.pathname.startsWith("/s/") && !url.pathname.includes(name))
    await rows(one).getByText("$").first().waitFor()
    await page.locator(".xterm-helper-textarea").focus()
    await page.keyboard.type("cat ~/greeting.txt\n")
    await rows(one).getByText("Good evening").first().waitFor()
    expect(one.complaints).toEqual([])
  })
})

describe("OpenCode, from the page", { timeout: slowMs }, () => {
  test("a key is sealed, and a form that says which agent, which models and where it lies starts it", async () => {
    const { page } = one
    await page.goto(`${origin()}/new`)
    await page.getByLabel("Agent", { exact: true }).selectOption("opencode")
    await page.getByText("No key for a model is set yet").waitFor()
    await page.goto(`${origin()}/secrets`)
    await page.getByRole("button", { name: "New secret" }).click()
    await page.getByRole("textbox", { name: "Name" }).fill("OPENAI_API_KEY")
    await page.getByLabel("Value").fill(key)
    await page.getByRole("button", { name: "Seal it" }).click()
    await page.getByRole("cell", { name: "OPENAI_API_KEY", exact: true }).waitFor()
    await page.goto(`${origin()}/new`)
    await page.getByLabel("Agent", { exact: true }).selectOption("opencode")
    expect(await page.getByLabel("Models").getAttribute("placeholder")).toBe("openai/gpt-5")
    await page.getByLabel("Models").fill("openai/clever, openai/quick")
    await page.getByLabel("Program").fill("/workspace/bin/opencode")
    await page.getByText("The machine: image, network, limits").click()
    await page.getByLabel("Name").fill("coder")
    await page.getByRole("combobox", { name: "Workspace" }).fill("calculator")
    await page.getByLabel("What shall it do?").fill("Hello, who is there?")
    await seen("new-opencode")
    await page.getByRole("button", { name: "Start the agent" }).click()
    await page.waitForURL(/\/s\/coder$/)
    await said().getByText("You said: Hello, who is there?").waitFor()
    await state().getByText("idle").waitFor()
  })

  test("it reads, mends and tries; its tools fold, what it changed is in Changes, the key is never inside", async () => {
    const { page } = one
    const filePath = "/workspace/add.mjs"
    await write(
      prompted(
        { tool: "read", args: { filePath } },
        { tool: "edit", args: { filePath, oldString: "a - b", newString: "a + b" } },
        { tool: "bash", args: { command: "node test.mjs", description: "runs the test" } },
        { text: "It was a **minus**. Now the test passes.", pieces: 6 },
      ),
    )
    await said().getByText("Now the test passes.").waitFor()
    expect(await said().locator("strong", { hasText: "minus" }).count()).toBe(1)
    expect(await page.locator(".tool-details").count()).toBe(0)
    await page.getByRole("button", { name: /^edit/ }).click()
    await page.locator(".tool .diff [data-kind=new]", { hasText: "a + b" }).waitFor()
    await page.getByRole("button", { name: /^bash/ }).click()
    await page.locator(".output").getByText("ok 1").waitFor()
    await page.getByRole("button", { name: /^edit/ }).click()
    await page.locator(".tool .diff").waitFor({ state: "detached" })
    await page.getByRole("tab", { name: "Changes", exact: true }).click()
    await page.locator(".changes .diff [data-kind=new]", { hasText: "a + b" }).waitFor()
    await seen("opencode")
    const inside = await ask("/v1/sessions/coder/exec", {
      cmd: "cat /proc/[0-9]*/environ 2>/dev/null | grep -c 77f1c[0]",
    })
    expect(((await inside.json()) as { stdout: string }).stdout.trim()).toBe("0")
    expect(new Set(llm.asked.map((asked) => asked.key))).toEqual(new Set([key]))
  })

  test("the model is chosen where one writes", async () => {
    const { page } = one
    const picker = page.getByRole("combobox", { name: "Model" })
    expect(await picker.locator("option").allTextContents()).toEqual([
      ...["The agent's own model", "openai/clever", "openai/quick"],
    ])
    expect(llm.turns.at(-1)?.model).toBe("clever")
    await picker.selectOption("openai/quick")
    await write("And you?")
    await said().getByText("You said: And you?").waitFor()
    expect(llm.turns.at(-1)?.model).toBe("quick")
  })

  test("what it runs is stopped, all of it, and the next prompt works", async () => {
    const { page } = one
    await state().getByText("idle").waitFor()
    const command = "sleep 4242 & sleep 4242 | cat"
    await write(prompted({ tool: "bash", args: { command, description: "sleeps" } }, { text: "slept" }))
    await page.locator('.tool[data-status="running"]').waitFor()
    await page.getByRole("button", { name: "Stop" }).click()
    await page.locator(".ending", { hasText: "stopped" }).waitFor()
    await ask("/v1/sessions/coder/exec", { cmd: "while pgrep -f '^sleep 4242'; do sleep 0.05; done" })
    await write("Are you there?")
    await said().getByText("You said: Are you there?").waitFor()
    await seen("opencode-stopped")
    expect(one.complaints).toEqual([])
  })
})
