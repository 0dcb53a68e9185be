import { readdir, readFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { gzipSync } from "node:zlib"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Warren } from "../warren.ts"
import { barriers } from "./accessible.ts"
import { Chromium, printedLink, type Person } from "./browser.ts"
import { CutLine } from "./cut-line.ts"
import { writeDown } from "./long-conversation.ts"

const web = resolve(import.meta.dirname, "../../dist/web")
const firstPageBytesMax = 300 * 1024
/** Of messages, whatever their number: what fits into sight, and a little around it. */
const shownMax = 60
/** A loaded machine is no fault of the page. */
const patienceMs = 30_000

let warren: Warren
let line: CutLine
let chromium: Chromium
let one: Person
beforeAll(async () => {
  warren = await Warren.start()
  line = await CutLine.to(warren.port)
  chromium = await Chromium.open([`localhost:${warren.port}`, `127.0.0.1:${line.port}`])
  one = await chromium.person()
  one.page.setDefaultTimeout(patienceMs)
}, 300_000)
afterAll(async () => {
  await chromium?.[Symbol.asyncDispose]()
  await line?.[Symbol.asyncDispose]()
  await warren?.[Symbol.asyncDispose]()
}, 120_000)

const origin = (): string => `http://localhost:${warren.port}`
const script = (...steps: object[]): string => `[[script:${JSON.stringify({ steps })}]]`

// oxlint-disable-next-line typescript/no-explicit-any -- as it came
async function ask(path: string, body?: object): Promise<any> {
  const answer = await fetch(`http://127.0.0.1:${warren.port}${path}`, {
    method: body ? "POST" : "GET",
    headers: { authorization: `Bearer ${await warren.token()}`, "content-type": "application/json" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  return answer.json()
}

/** Another browser of the same person. */
async function another(options = {}): Promise<Person> {
  const person = await chromium.person({ storageState: await one.cookies, ...options })
  person.page.setDefaultTimeout(patienceMs)
  return person
}

async function withAgent(name: string): Promise<void> {
  await ask("/v1/sessions", { name })
  await ask(`/v1/sessions/${name}/agent`, { spec: { adapter: "scripted" } })
}

async function write({ page }: Person, text: string): Promise<void> {
  await page.getByRole("textbox", { name: /Reply to the agent|Your answer/ }).fill(text)
  await page.keyboard.press("Enter")
}

/** Runs in the browser, which has more than Node does. */
const colourOf = (element: unknown): string => {
  const { getComputedStyle } = globalThis as unknown as { getComputedStyle(element: unknown): { color: string } }
  return getComputedStyle(element).color
}

const said = ({ page }: Person): ReturnType<Person["page"]["locator"]> => page.locator('[data-role="assistant"]')
const rows = ({ page }: Person): ReturnType<Person["page"]["locator"]> => page.locator(".xterm-rows")
const state = ({ page }: Person): ReturnType<Person["page"]["locator"]> => page.locator(".session-head .state-line")

describe("the page, as a newcomer finds it", () => {
  test("what is loaded first is small", async () => {
    const html = await readFile(join(web, "index.html"), "utf8")
    const named = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map(([, path = ""]) => path)
    const sizes = await Promise.all(named.map(async (path) => gzipSync(await readFile(join(web, path))).length))
    expect(named.length).toBeGreaterThan(1)
    expect(sizes.reduce((sum, size) => sum + size, gzipSync(html).length)).toBeLessThan(firstPageBytesMax)
    expect((await readdir(join(web, "assets"))).filter((name) => name.endsWith(".js.br")).length).toBeGreaterThan(1)
  })

  test("a stranger is asked to sign in; the printed link signs in", async () => {
    const { page } = one
    await page.goto(origin())
    await page.getByRole("heading", { name: "Sign in to Warren" }).waitFor()
    await one.shot("login")
    expect(await barriers(page)).toEqual([])
    await page.goto(printedLink(warren.said))
    await page.getByRole("heading", { name: "Welcome. What shall it be?" }).waitFor()
    expect(new URL(page.url()).hash).toBe("")
    await one.shot("home")
    expect(await barriers(page)).toEqual([])
  })

  test("a link that was used lets nobody else in", async () => {
    await using stranger = await chromium.person()
    await stranger.page.goto(printedLink(warren.said))
    await stranger.page.getByText("This link does not work any more").waitFor({ timeout: patienceMs })
  })

  test("one click is an empty sandbox with a terminal, which everybody who looks shares", async () => {
    const { page } = one
    await page.getByRole("button", { name: /Empty sandbox/ }).click()
    await page.waitForURL(/\/s\/[\w-]+\/terminal$/)
    await rows(one).getByText("$").first().waitFor()
    await page.keyboard.type("echo $((6*7)) > answer; cat answer\n")
    await rows(one).getByText("42", { exact: true }).first().waitFor()
    await page.keyboard.type(String.raw`printf '\033[38;2;220;130;130mcolour\033[0m\n'` + "\n")
    const colour = rows(one).locator("span", { hasText: /^colour$/ })
    expect(await colour.evaluate(colourOf)).toBe("rgb(220, 130, 130)")
    await page.keyboard.press("Control+Shift+F")
    await page.getByRole("searchbox", { name: "Find in the terminal" }).fill("answer")
    await one.shot("terminal")
    await page.keyboard.press("Escape")
    expect(await barriers(page)).toEqual([])
    await using two = await another()
    await two.page.goto(page.url())
    await rows(two).getByText("42", { exact: true }).first().waitFor()
    await two.page.locator(".xterm-helper-textarea").focus()
    await two.page.keyboard.type("echo from-the-other-$((1+1))\n")
    await rows(one).getByText("from-the-other-2").first().waitFor()
    expect(two.complaints).toEqual([])
  })

  test("a form makes a session with an agent, and its answer streams in", async () => {
    const { page } = one
    await page.locator("body").press("Escape")
    await page.goto(`${origin()}/new`)
    await page.getByText("The machine: image, network, limits").click()
    await page.getByLabel("Name").fill("first-agent")
    await one.shot("new-session")
    expect(await barriers(page)).toEqual([])
    await page.getByLabel("What shall it do?").fill("Hello there")
    await page.getByRole("button", { name: "Start the agent" }).click()
    await page.waitForURL(/\/s\/first-agent$/)
    await said(one).getByText("I am a scripted agent").waitFor()
    const tool = page.getByRole("button", { name: /^bash/ })
    await tool.click()
    await page
      .locator(".output")
      .getByText(/^user in /)
      .waitFor()
    await state(one).getByText("idle").waitFor()
    await one.shot("chat")
    expect(await barriers(page)).toEqual([])
  })

  test("a question is a card with keys, in the title and in the list; whoever else looks sees it answered", async () => {
    const { page } = one
    await using two = await another({ colorScheme: "light" })
    await two.page.goto(`${origin()}/s/first-agent`)
    const edit = { filePath: "/workspace/a.ts", oldString: "if (user) {", newString: "if (user?.active) {" }
    await write(
      one,
      `Go on ${script({ tool: "edit", args: edit }, { question: "Which way?", options: ["Left", "Right"] }, { text: "So be it." })}`,
    )
    await page.getByRole("button", { name: "2 Right" }).waitFor()
    await expect.poll(() => page.title()).toContain("◐")
    await page.locator('.sidebar .line[data-state="asks"]').waitFor()
    await two.page.getByRole("button", { name: "2 Right" }).waitFor()
    await two.page.getByRole("button", { name: /^edit/ }).click()
    await two.page.locator(".diff").getByText("if (user?.active) {").waitFor()
    await two.shot("question-light")
    expect(await barriers(two.page)).toEqual([])
    await page.getByRole("textbox", { name: "Your answer" }).press("2")
    for (const person of [one, two]) {
      await said(person).getByText("Answer: Right").waitFor()
      await person.page.locator(".question").waitFor({ state: "detached" })
    }
    expect(two.complaints).toEqual([])
  })

  test("what runs is stopped, and what waits says that it waits", async () => {
    const { page } = one
    await write(one, script({ text: "I begin. " }, { hang: true }))
    await said(one).getByText("I begin.").waitFor()
    await state(one).getByText("working").waitFor()
    await write(one, "And then this")
    await page.getByText("waits for its turn").waitFor()
    await one.shot("working")
    await page.getByRole("textbox", { name: "Reply to the agent" }).press("Escape")
    await page.getByText("stopped", { exact: true }).waitFor()
    await said(one).getByText("You said: And then this").waitFor()
  })

  test("a line that was cut loses nothing: not what was said meanwhile, not what was being written", async () => {
    const { page } = one
    await state(one).getByText("idle").waitFor()
    const writing = page.getByRole("textbox", { name: "Reply to the agent" })
    await writing.fill("half a thought")
    const before = one.complaints.length
    line.cut()
    await page.getByText("Reconnecting…").waitFor()
    await one.shot("reconnecting")
    await ask("/v1/sessions/first-agent/agent/prompts", { text: `Meanwhile ${script({ text: "said while away" })}` })
    line.mend()
    await said(one).getByText("said while away").waitFor()
    await page.getByText("Reconnecting…").waitFor({ state: "detached" })
    expect(await writing.inputValue()).toBe("half a thought")
    await page.reload()
    await expect.poll(() => writing.inputValue()).toBe("half a thought")
    await writing.fill("")
    // A browser complains of each connection that could not be made, and should.
    one.complaints.splice(before)
  })

  test("a long conversation opens at its end, holds still when read, and says what is new", async () => {
    const { page } = one
    const long = Array.from({ length: 120 }, (_, index) => `paragraph ${index}\n`).join("\n")
    await write(one, script({ text: long, pieces: 40 }))
    await said(one).getByText("paragraph 119", { exact: true }).waitFor()
    await page.locator(".messages").hover()
    await page.mouse.wheel(0, -3_000)
    await page.getByRole("button", { name: /To the end|new/ }).waitFor()
    const held = await page.locator(".messages").evaluate((list) => list.scrollTop)
    await ask("/v1/sessions/first-agent/agent/prompts", { text: script({ text: "something new" }) })
    await page.getByRole("button", { name: /\d+ new/ }).waitFor()
    expect(await page.locator(".messages").evaluate((list) => list.scrollTop)).toBe(held)
    await page.getByRole("button", { name: /\d+ new/ }).click()
    await said(one).getByText("something new").waitFor()
  })

  test(
    "ten thousand messages are as few in the page as ten, at the end and all the way to the first",
    async () => {
      await withAgent("long")
      await ask("/v1/sessions/long/agent/prompts", { text: "Let us begin." })
      await expect.poll(async () => (await ask("/v1/sessions/long/agent")).prompts, { timeout: patienceMs }).toEqual([])
      const [{ chatId }] = (await ask("/v1/sessions/long/agent")).channels
      writeDown(warren.home, chatId, 10_000)
      await using two = await another()
      const { page } = two
      const shown = (): Promise<number> => page.locator(".messages-all > *").count()
      await page.goto(`${origin()}/s/long`)
      await page.getByText("line 0 of message 9999", { exact: true }).waitFor()
      expect(await shown()).toBeLessThan(shownMax)
      const list = page.locator(".messages")
      await list.focus()
      await page.keyboard.press("PageUp")
      await page.getByRole("button", { name: "To the end" }).waitFor()
      await page.keyboard.press("Home")
      await page.getByText("Let us begin.", { exact: true }).waitFor()
      await expect.poll(() => list.evaluate((element) => element.scrollTop)).toBeLessThan(100)
      expect(await shown()).toBeLessThan(shownMax)
      await two.shot("long-conversation")
      await page.getByRole("button", { name: "To the end" }).click()
      await page.getByText("line 0 of message 9999", { exact: true }).waitFor()
      expect(await shown()).toBeLessThan(shownMax)
      expect(two.complaints).toEqual([])
    },
    4 * patienceMs,
  )

  test("a fork has the files, and the one it came from goes on", async () => {
    const { page } = one
    await ask("/v1/sessions/first-agent/exec", { cmd: "echo kept > /workspace/file" })
    await page.getByRole("button", { name: "Actions" }).click()
    await page.getByRole("menuitem", { name: "Fork…" }).click()
    await one.shot("fork")
    await page.getByRole("button", { name: "Fork", exact: true }).click()
    await page.waitForURL((url) => url.pathname.startsWith("/s/") && !url.pathname.includes("first-agent"))
    await rows(one).getByText("$").first().waitFor()
    await page.locator(".xterm-helper-textarea").focus()
    await page.keyboard.type("cat /workspace/file\n")
    await rows(one).getByText("kept", { exact: true }).first().waitFor()
    await page.goBack()
    await page.waitForURL(/first-agent/)
  })

  test("a session that was put to sleep looks asleep, and wakes when it is written to", async () => {
    const { page } = one
    await page.getByRole("button", { name: "Actions" }).click()
    await page.getByRole("menuitem", { name: "Hibernate" }).click()
    await state(one).getByText("asleep").waitFor()
    await page.getByRole("heading", { name: "Asleep" }).waitFor()
    await page.goto(origin())
    await page
      .getByRole("navigation", { name: "Sessions" })
      .getByRole("link", { name: /first-agent/ })
      .click()
    await page.getByText("Asleep. Write something, and it wakes.").waitFor()
    await one.shot("asleep")
    expect(await barriers(page)).toEqual([])
    await write(one, "Good morning")
    await page.getByText(/woke in \d+/).waitFor()
    await said(one).getByText("You said: Good morning").waitFor()
    await one.shot("woke")
  })

  test("what listens inside is seen: in a tab of its own, and on the page where that has the same domain", async () => {
    await ask("/v1/sessions", { name: "served" })
    await ask("/v1/sessions/served/exec", {
      cmd: "mkdir /tmp/site && echo '<h1>From inside</h1>' > /tmp/site/index.html",
    })
    await ask("/v1/sessions/served/processes", { cmd: "cd /tmp/site && exec python3 -m http.server 8000" })
    await using two = await another()
    const { page } = two
    await page.goto(`${origin()}/s/served/preview`)
    await page.getByRole("spinbutton", { name: "Port" }).fill("8000")
    await page.getByRole("button", { name: "Show" }).click()
    const [tab] = await Promise.all([
      page.waitForEvent("popup"),
      page.getByRole("button", { name: "Open port 8000 in a tab" }).click(),
    ])
    await tab.getByRole("heading", { name: "From inside" }).waitFor()
    expect(new URL(tab.url()).hostname).toMatch(/^p8000-\w+\.warren\.localhost$/)
    await page.getByRole("link", { name: "they are shown right here" }).click()
    await page.waitForURL(/^http:\/\/warren\.localhost:\d+\/s\/served\/preview$/)
    await page.frameLocator("iframe").getByRole("heading", { name: "From inside" }).waitFor()
    await two.shot("preview")
    expect(await barriers(page)).toEqual([])
    expect(two.complaints).toEqual([])
  })

  test("anything is found by a few letters, and the keys are told", async () => {
    const { page } = one
    await page.keyboard.press("Control+k")
    await page.getByRole("combobox").fill("fiag")
    await page.getByRole("option", { name: /first-agent/ }).waitFor()
    await one.shot("palette")
    expect(await barriers(page)).toEqual([])
    await page.keyboard.press("Enter")
    await page.waitForURL(/first-agent/)
    await page.locator(".messages").focus()
    await page.keyboard.press("?")
    await page.getByRole("heading", { name: "Keys" }).waitFor()
    await one.shot("keys")
    expect(await barriers(page)).toEqual([])
    await page.keyboard.press("Escape")
  })

  test("a phone shows one thing at a time", async () => {
    await withAgent("on-a-phone")
    await using phone = await another({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true })
    await phone.page.goto(`${origin()}/s/on-a-phone`)
    await write(phone, "Hello")
    await said(phone).getByText("You said: Hello").waitFor()
    await expect.poll(() => said(phone).getByText("You said: Hello").isVisible()).toBe(true)
    await phone.shot("phone-chat")
    await phone.page.getByRole("button", { name: "Tools" }).tap()
    await rows(phone).getByText("$").first().waitFor()
    await expect.poll(() => phone.page.locator(".frame").evaluate((frame) => frame.scrollLeft)).toBe(780)
    await phone.shot("phone-tools")
    expect(await barriers(phone.page)).toEqual([])
    expect(phone.complaints).toEqual([])
  })

  test("what is not there says so, with a way on", async () => {
    const { page } = one
    await page.goto(`${origin()}/s/never-was`)
    await page.getByRole("heading", { name: "There is no session never-was" }).waitFor()
    await page.getByRole("button", { name: "To your sessions" }).click()
    await page.getByRole("heading", { name: "Start something" }).waitFor()
  })

  test("the console had nothing to complain about, and nothing was asked of anybody else", () => {
    expect(one.complaints).toEqual([])
  })
})
