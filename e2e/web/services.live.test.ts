import type { FrameLocator, Locator } from "playwright-core"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Warren } from "../warren.ts"
import { barriers } from "./accessible.ts"
import { Chromium, printedLink, type Person } from "./browser.ts"

/**
 * What Warren runs in a session, in a real browser. By default only what is quick. `WARREN_EDITOR=real` fetches the real code-server
 * from npm by a click and works in it (about two minutes); `WARREN_DESKTOP=real` makes the image `desktop` and uses its screen (about
 * five).
 */
const isEditor = process.env["WARREN_EDITOR"] === "real"
const isDesktop = process.env["WARREN_DESKTOP"] === "real"
/** A loaded machine is no fault of the page. */
const patienceMs = 60_000
const fetchMs = 600_000

let warren: Warren
let chromium: Chromium
let one: Person
beforeAll(async () => {
  warren = await Warren.start()
  chromium = await Chromium.open()
  one = await chromium.person()
  one.page.setDefaultTimeout(patienceMs)
  // At the domain: only there can what is inside be shown in a frame.
  const link = new URL(printedLink(warren.said))
  link.hostname = "warren.localhost"
  await one.page.goto(link.href)
  await one.page.getByRole("heading", { name: /Welcome/ }).waitFor()
}, 300_000)
afterAll(async () => {
  await chromium?.[Symbol.asyncDispose]()
  await warren?.[Symbol.asyncDispose]()
}, 120_000)

const at = (path: string): string => `http://warren.localhost:${warren.port}${path}`

async function ask(method: string, path: string, body?: object): Promise<Response> {
  const headers = { authorization: `Bearer ${await warren.token()}`, "content-type": "application/json" }
  const sent = body ? { body: JSON.stringify(body) } : {}
  return fetch(`http://127.0.0.1:${warren.port}${path}`, { method, headers, ...sent })
}

async function made(name: string, wishes: object): Promise<void> {
  const answer = await ask("POST", "/v1/sessions", { name, ...wishes })
  if (!answer.ok) throw new Error(await answer.text())
}

/** What a command says in a session. */
async function inside(session: string, cmd: string): Promise<string> {
  const answer = await ask("POST", `/v1/sessions/${session}/exec`, { argv: ["sh", "-c", cmd] })
  return ((await answer.json()) as { stdout: string }).stdout
}

async function install(session: string): Promise<void> {
  await one.page.goto(at(`/s/${session}/editor`))
  await one.page.getByRole("heading", { name: "VS Code is not in this image" }).waitFor()
  await one.page.getByRole("button", { name: "Install it here" }).click()
}

describe("an editor that the image lacks", () => {
  test("is not offered in vain: a session without a network is told so", async () => {
    await made("alone", { network: { mode: "none" } })
    await one.page.goto(at("/s/alone/editor"))
    await one.page.getByRole("button", { name: "Install it here" }).waitFor()
    expect(await barriers(one.page)).toEqual([])
    await one.shot("editor-lacking")
    await one.page.getByRole("button", { name: "Install it here" }).click()
    await one.page.getByRole("heading", { name: "VS Code cannot be installed here" }).waitFor()
    await one.page.getByText("this session has no network").waitFor()
  })

  test("asks for the one host it comes from, and says why when that does not answer", async () => {
    // Nobody listens there: as a registry that is away, and quicker.
    await made("listed", {
      network: { mode: "proxy", allow: [] },
      env: { npm_config_registry: "http://127.0.0.1:9/" },
    })
    await install("listed")
    await one.page.getByText("may not reach registry.npmjs.org").waitFor()
    await one.shot("editor-forbidden")
    await one.page.getByRole("button", { name: "Allow registry.npmjs.org and install" }).click()
    const rows = one.page.locator(".xterm-rows")
    await rows.getByText("1/3 code-server").waitFor()
    await rows.getByText("npm could not fetch it").waitFor()
    await one.page.getByText("VS Code could not be installed").waitFor()
    await one.shot("editor-failed")
    const { network } = (await (await ask("GET", "/v1/sessions/listed")).json()) as { network: { allow: string[] } }
    expect(network.allow).toEqual(["registry.npmjs.org"])
    expect(await inside("listed", "ls ~/.local/bin 2>/dev/null")).toBe("")
  })
})

describe.skipIf(!isEditor)("the real VS Code", () => {
  const name = "editing"
  const frame = (): FrameLocator => one.page.frameLocator(".service-frame")
  const file = (): Locator => frame().getByRole("treeitem", { name: /hello\.txt/ })

  test("is fetched by a click and opens in the page", { timeout: fetchMs }, async () => {
    await made(name, { network: { mode: "host" }, limits: { memoryBytes: 2 * 2 ** 30, cpus: 2, pidsMax: 1024 } })
    await inside(name, "cd /workspace && echo from-inside > hello.txt")
    await install(name)
    await file().waitFor({ timeout: fetchMs })
    await one.shot("vscode")
  })

  test("shows a file, and what is typed and saved there is in the session", { timeout: 120_000 }, async () => {
    await file().dblclick()
    await frame().getByText("from-inside").waitFor()
    await frame().locator(".monaco-editor .view-lines").click()
    await one.page.keyboard.press("Control+End")
    await one.page.keyboard.type("typed-in-vscode")
    await one.page.keyboard.press("Control+s")
    await expect
      .poll(() => inside(name, "cat /workspace/hello.txt"), { timeout: patienceMs })
      .toContain("typed-in-vscode")
    await one.shot("vscode-saved")
  })

  test("sees what changes inside, and its own terminal works", { timeout: 120_000 }, async () => {
    await inside(name, "echo new > /workspace/another.txt")
    await frame()
      .getByRole("treeitem", { name: /another\.txt/ })
      .waitFor()
    await frame().locator(".monaco-editor .view-lines").click()
    await one.page.keyboard.press("Control+`")
    await frame().locator(".terminal.xterm").first().waitFor()
    await frame().locator(".terminal.xterm").first().click()
    await one.page.keyboard.type("echo $((6*7)) > /workspace/typed\n")
    await expect.poll(() => inside(name, "cat /workspace/typed"), { timeout: patienceMs }).toContain("42")
    await one.shot("vscode-terminal")
  })

  test("is there again after the session slept, over what it left", { timeout: 240_000 }, async () => {
    await one.page.goto(at("/"))
    expect((await ask("POST", `/v1/sessions/${name}/hibernate`, {})).status).toBe(200)
    expect((await ask("POST", `/v1/sessions/${name}/restore`, {})).status).toBe(200)
    expect(await inside(name, "ls /tmp/.warren/services/")).toContain("vscode.sock")
    await one.page.goto(at(`/s/${name}/editor`))
    await file().waitFor({ timeout: 120_000 })
    await file().dblclick()
    await frame().getByText("typed-in-vscode").first().waitFor()
  })
})

describe.skipIf(!isDesktop)("the desktop of its image", () => {
  const name = "screen"

  test("can be made", { timeout: 1_200_000 }, async () => {
    const making = await ask("POST", "/v1/images/make", { name: "desktop" })
    expect(await making.text()).not.toContain('"fault"')
    await made(name, {
      image: "desktop",
      network: { mode: "none" },
      limits: { memoryBytes: 2 * 2 ** 30, pidsMax: 1024 },
    })
  })

  test("shows what runs on it, and takes the mouse and the keyboard", { timeout: 240_000 }, async () => {
    await one.page.goto(at(`/s/${name}/desktop`))
    const canvas = one.page.locator(".screen canvas")
    await canvas.waitFor()
    await one.page.getByText("The sandbox's screen").waitFor()
    await inside(name, "DISPLAY=:1 setsid -f xterm -geometry 100x30+100+100 >/dev/null 2>&1")
    await expect
      .poll(() => inside(name, "DISPLAY=:1 xdotool search --class xterm | wc -l"), { timeout: patienceMs })
      .not.toBe("0\n")
    await canvas.click({ position: { x: 200, y: 200 } })
    await one.page.keyboard.type("echo typed-on-the-desktop > /workspace/typed\n")
    await expect
      .poll(() => inside(name, "cat /workspace/typed"), { timeout: patienceMs })
      .toContain("typed-on-the-desktop")
    const browse =
      "DISPLAY=:1 setsid -f chromium 'data:text/html,<title>ours</title><h1>a page of ours</h1>' >/dev/null 2>&1"
    await inside(name, browse)
    const named = () => inside(name, "DISPLAY=:1 xdotool search --name '^ours' | wc -l")
    await expect.poll(named, { timeout: 120_000 }).not.toBe("0\n")
    await one.shot("desktop-image")
  })

  test("comes back after sleep, over the locks it left", { timeout: 240_000 }, async () => {
    await one.page.goto(at("/"))
    await ask("POST", `/v1/sessions/${name}/hibernate`, {})
    await ask("POST", `/v1/sessions/${name}/restore`, {})
    await one.page.goto(at(`/s/${name}/desktop`))
    await one.page.getByText("The sandbox's screen").waitFor()
    await inside(name, "DISPLAY=:1 setsid -f chromium 'data:text/html,<title>again</title>' >/dev/null 2>&1")
    const named = () => inside(name, "DISPLAY=:1 xdotool search --name '^again' | wc -l")
    await expect.poll(named, { timeout: 120_000 }).not.toBe("0\n")
  })
})
