import { createReadStream } from "node:fs"
import { ScriptedLlm } from "@warren/agents/testing/llm/scripted-llm.ts"
import { dueStep, prompted } from "@warren/agents/testing/llm/step.ts"
import { Scope } from "@warren/base/scope.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { programs } from "../agents/programs.ts"
import { Warren } from "../warren.ts"
import { barriers } from "./accessible.ts"
import { Chromium, printedLink, type Person } from "./browser.ts"

/** A loaded machine is no fault of the page. */
const patienceMs = 60_000
const slowMs = 240_000
const key = "sk-real-KEY-77f1c0-openai"
const project = `cd /workspace && git init -q -b main . && echo bin > .gitignore &&
printf 'export const add = (a, b) => a - b\\n' > add.mjs &&
printf 'import { add } from "./add.mjs"\\nif (add(2, 3) !== 5) process.exit(1)\\nconsole.log("ok 1")\\n' > test.mjs &&
git add -A && git -c user.name=a -c user.email=a@b commit -qm first`

const scope = new Scope()
let llm: ScriptedLlm
let warren: Warren
let one: Person

beforeAll(async () => {
  llm = scope.use(await ScriptedLlm.listen(dueStep))
  warren = scope.use(await Warren.start(undefined, { WARREN_OPENAI_URL: llm.url }))
  const chromium = scope.use(await Chromium.open())
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
const state = (): ReturnType<Person["page"]["locator"]> => one.page.locator(".session-head .state-line")

async function write(text: string): Promise<void> {
  await one.page.getByRole("textbox", { name: "Reply to the agent" }).fill(text)
  await one.page.keyboard.press("Enter")
}

async function seen(shot: string): Promise<void> {
  await one.shot(shot)
  expect(await barriers(one.page), shot).toEqual([])
}

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
    const inside = await ask("/v1/sessions/coder/exec", { cmd: "cat /proc/[0-9]*/environ 2>/dev/null | grep -c 77f1c[0]" })
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
