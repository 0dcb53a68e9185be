import { Chromium } from "./chromium.ts"
import { startControl } from "./control.ts"
import type { Context } from "./metric.ts"
import { Runner } from "./runner.ts"

/** Run in the page: when its first content was painted, and when what one came for was there. */
const painted = (isThere: string): string => `new Promise((done) => {
  const look = () => {
    const [paint] = performance.getEntriesByName("first-contentful-paint")
    if (paint && ${isThere}) done([paint.startTime, performance.now()])
    else setTimeout(look, 5)
  }
  look()
})`

export interface Opened {
  /** From the click on the link, in milliseconds. */
  readonly paintedMs: number
  /** As long as it took until what one came for was there. */
  readonly shownMs: number
  /** What went over the wire, compressed with gzip. */
  readonly bytes: number
}

/** The page as somebody opens it who is signed in and was never here with this browser. */
export class FirstPage {
  readonly #chromium: Chromium
  readonly #url: string
  readonly #cookie: string

  private constructor(chromium: Chromium, url: string, cookie: string) {
    this.#chromium = chromium
    this.#url = url
    this.#cookie = cookie
  }

  /** `prepare`: is given what there is before the page is first opened. */
  static async start(
    context: Context,
    prepare: (runner: Runner) => Promise<void> = () => Promise.resolve(),
  ): Promise<FirstPage> {
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const { port, token } = await startControl(context, runner)
    await prepare(runner)
    const url = `http://localhost:${port}`
    return new FirstPage(await Chromium.start(context), url, await signIn(url, token))
  }

  /** `isThere`: an expression of the page that holds when what one came for is shown. */
  async open(path = "/", isThere = `document.querySelector("h1")`): Promise<Opened> {
    const chromium = this.#chromium
    // A context of its own has no cookies and nothing kept.
    const { browserContextId } = await chromium.ask("Target.createBrowserContext")
    const { targetId } = await chromium.ask("Target.createTarget", { url: "about:blank", browserContextId })
    const { sessionId } = await chromium.ask("Target.attachToTarget", { targetId, flatten: true })
    const tab = String(sessionId)
    let bytes = 0
    const leave = chromium.hear(tab, (method, { encodedDataLength }) => {
      if (method === "Network.loadingFinished") bytes += Number(encodedDataLength)
    })
    try {
      await chromium.ask("Network.enable", {}, tab)
      const [name, value] = this.#cookie.split("=")
      await chromium.ask("Network.setCookie", { url: this.#url, name, value, path: "/" }, tab)
      await chromium.ask("Network.setExtraHTTPHeaders", { headers: { "accept-encoding": "gzip" } }, tab)
      await chromium.ask("Page.enable", {}, tab)
      await chromium.ask("Page.navigate", { url: this.#url + path }, tab)
      const asked = { expression: painted(isThere), awaitPromise: true, returnByValue: true }
      const { result } = await chromium.ask("Runtime.evaluate", asked, tab)
      const [paintedMs, shownMs] = (result as { value: [number, number] }).value
      return { paintedMs, shownMs, bytes }
    } finally {
      leave()
      await chromium.ask("Target.disposeBrowserContext", { browserContextId })
    }
  }
}

/** A cookie of the administrator, who comes with an invite as everybody does. */
async function signIn(url: string, token: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
  const account = (await (await fetch(`${url}/v1/account`, { headers })).json()) as { user: { name: string } }
  const body = JSON.stringify({ name: account.user.name })
  const invite = await fetch(`${url}/v1/invites`, { method: "POST", headers, body })
  const { code } = (await invite.json()) as { code: string }
  const came = await fetch(`${url}/v1/invites/redeem`, { method: "POST", body: JSON.stringify({ code }) })
  const [cookie] = came.headers.getSetCookie()
  if (cookie === undefined) throw new Error(`nobody was signed in: ${await came.text()}`)
  return cookie.split(";")[0] ?? ""
}
