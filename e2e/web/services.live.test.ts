import type { FrameLocator, Locator } from "playwright-core"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Warren } from "../warren.ts"
import { barriers } from "./accessible.ts"
import type { Person } from "./browser.ts"
import { FirstUser } from "./first-user.ts"

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

let user: FirstUser
let warren: Warren
let one: Person
beforeAll(async () => {
  // At the domain: only there can what is inside be shown in a frame.
  user = await FirstUser.signIn({ host: "warren.localhost", patienceMs })
  ;({ warren, one } = user)
}, 300_000)
afterAll(() => user?.[Symbol.asyncDispose](), 120_000)

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

describe("a terminal as a page of its own", () => {
  /** As another program would lead a person there. */
  async function linkTo(session: string, query: string): Promise<string> {
    const answer = await ask("POST", `/v1/sessions/${session}/gateway-token`, {})
    const { token, session: id } = (await answer.json()) as { token: string; session: string }
    return at(`/s/${id}/ttyd/?${query}token=${token}`)
  }
  const rows = (): Locator => one.page.locator(".xterm-rows")

  test("is opened by a link, shown at a name of its own, and can be typed into", async () => {
    await made("tty", { network: { mode: "none" } })
    one.complaints.length = 0
    await one.page.goto(await linkTo("tty", "arg=own&"))
    await rows().getByText("$").first().waitFor()
    expect(new URL(one.page.url()).host).toMatch(/^ttyd-\w{20}\.warren\.localhost/)
    expect(one.page.url()).not.toContain("token=")
    await one.page.keyboard.type("echo $((6*7)) > ~/answer; echo said-$(cat ~/answer)\n")
    await rows().getByText("said-42", { exact: true }).waitFor()
    expect(await inside("tty", "cat ~/answer")).toBe("42\n")
    expect(await one.page.title()).toBe("own")
    expect(await barriers(one.page)).toEqual([])
    await one.shot("ttyd")
  })

  test("is the same after a reload and for everybody, takes a flood, and ends when its shell does", async () => {
    await one.page.reload()
    await rows().getByText("said-42", { exact: true }).waitFor()
    const before = one.page.viewportSize()
    await one.page.setViewportSize({ width: 700, height: 400 })
    await one.page.keyboard.type("clear; seq 200000; echo size-$(stty size | tr ' ' x)-end\n")
    await rows()
      .getByText(/size-\d+x\d+-end/)
      .last()
      .waitFor()
    if (before) await one.page.setViewportSize(before)
    await one.page.keyboard.type("exit 3\n")
    await one.page.getByText("It ended with 3. Press Enter to open it again").waitFor()
    await one.page.keyboard.press("Enter")
    await rows().getByText("$").first().waitFor()
    expect(one.complaints).toEqual([])
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
    await frame().getByText("from-inside").first().waitFor()
    await frame().locator(".editor-instance .monaco-editor .view-lines").first().click()
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
    await frame().locator(".editor-instance .monaco-editor .view-lines").first().click()
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
    // As one that was killed leaves it.
    await inside(name, "mkdir -p /tmp/.warren/services; : > /tmp/.warren/services/vscode.sock")
    await one.page.goto(at(`/s/${name}/editor`))
    await file().waitFor({ timeout: 120_000 })
    await file().dblclick()
    await frame().getByText("typed-in-vscode").first().waitFor()
  })
})

/** Runs in the browser, which has more than Node does. */
const coloursOf = (element: unknown): number => {
  const canvas = element as { width: number; height: number; getContext(kind: "2d"): { getImageData: typeof pixels } }
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
  return new Set(Array.from({ length: data.length / 4 }, (_, at) => `${data[at * 4]} ${data[at * 4 + 1]}`)).size
}
declare const pixels: (x: number, y: number, width: number, height: number) => { readonly data: Uint8Array }

describe.skipIf(!isDesktop)("the desktop of its image", () => {
  const name = "screen"
  const windows = async (which: string): Promise<number> =>
    Number(await inside(name, `DISPLAY=:1 xdotool search ${which} | wc -l`))

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
    await expect.poll(() => windows("--class xterm"), { timeout: patienceMs }).toBeGreaterThan(0)
    await canvas.click({ position: { x: 200, y: 200 } })
    await one.page.keyboard.type("echo typed-on-the-desktop > /workspace/typed\n")
    await expect
      .poll(() => inside(name, "cat /workspace/typed"), { timeout: patienceMs })
      .toContain("typed-on-the-desktop")
    const browse =
      "DISPLAY=:1 setsid -f chromium 'data:text/html,<title>ours</title><h1>a page of ours</h1>' >/dev/null 2>&1"
    await inside(name, browse)
    await expect.poll(() => windows("--name '^ours'"), { timeout: 120_000 }).toBeGreaterThan(0)
    // Not a window without anything in it.
    await expect.poll(() => canvas.evaluate(coloursOf), { timeout: patienceMs }).toBeGreaterThan(50)
    await one.shot("desktop-image")
  })

  test("comes back after sleep, over the locks it left", { timeout: 240_000 }, async () => {
    await one.page.goto(at("/"))
    await ask("POST", `/v1/sessions/${name}/hibernate`, {})
    await ask("POST", `/v1/sessions/${name}/restore`, {})
    await one.page.goto(at(`/s/${name}/desktop`))
    await one.page.getByText("The sandbox's screen").waitFor()
    await inside(name, "DISPLAY=:1 setsid -f chromium 'data:text/html,<title>again</title>' >/dev/null 2>&1")
    await expect.poll(() => windows("--name '^again'"), { timeout: 120_000 }).toBeGreaterThan(0)
  })
})
