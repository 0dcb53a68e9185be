import { Fault } from "@warren/base/fault.ts"
import type { Clock } from "@warren/base/clock.ts"
import { browserLimits } from "../limits.ts"
import type { Cdp } from "./cdp.ts"

export interface Looking {
  readonly url: string
  readonly width: number
  readonly height: number
  /** After it has loaded. */
  readonly waitMs: number
}

export interface Seen {
  readonly url: string
  readonly status?: number
  readonly title: string
  readonly text: string
  readonly isCut: boolean
}

type Result = Readonly<Record<string, unknown>>

/** One page in a window of its own: nobody else's cookies, and none left after it. */
export class Page implements AsyncDisposable {
  readonly #cdp: Cdp
  readonly #place: Disposable
  readonly #context: string
  readonly #session: string
  readonly #signal: AbortSignal
  readonly #clock: Clock
  #status: number | undefined

  private constructor(parts: {
    cdp: Cdp
    place: Disposable
    context: string
    session: string
    signal: AbortSignal
    clock: Clock
  }) {
    this.#cdp = parts.cdp
    this.#place = parts.place
    this.#context = parts.context
    this.#session = parts.session
    this.#signal = parts.signal
    this.#clock = parts.clock
  }

  static async open(cdp: Cdp, looking: Looking, clock: Clock, signal: AbortSignal): Promise<Page> {
    const place = await cdp.place(signal)
    let context = ""
    try {
      context = textIn(
        await cdp.ask("Target.createBrowserContext", { disposeOnDetach: true }, { signal }),
        "browserContextId",
      )
      const created = await cdp.ask(
        "Target.createTarget",
        { url: "about:blank", browserContextId: context },
        { signal },
      )
      const attaching = { targetId: textIn(created, "targetId"), flatten: true }
      const session = textIn(await cdp.ask("Target.attachToTarget", attaching, { signal }), "sessionId")
      const page = new Page({ cdp, place, context, session, signal, clock })
      await page.#load(looking)
      return page
    } catch (failure) {
      await close(cdp, context)
      place[Symbol.dispose]()
      throw failure
    }
  }

  async picture(format: "png" | "jpeg", isWhole: boolean): Promise<Buffer> {
    const clip = isWhole ? await this.#whole() : {}
    const { data } = await this.#ask("Page.captureScreenshot", { format, captureBeyondViewport: isWhole, ...clip })
    if (typeof data !== "string") throw new Fault("internal", "the browser's picture is none")
    return Buffer.from(data, "base64")
  }

  async read(charsMax: number): Promise<Seen> {
    const read = `JSON.stringify({ url: location.href, title: document.title, text: document.body ? document.body.innerText : "" })`
    const seen = JSON.parse(await this.#value(read)) as { url: string; title: string; text: string }
    const status = this.#status === undefined ? {} : { status: this.#status }
    return { ...seen, ...status, text: seen.text.slice(0, charsMax), isCut: seen.text.length > charsMax }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await close(this.#cdp, this.#context)
    this.#place[Symbol.dispose]()
  }

  async #load({ url, width, height, waitMs }: Looking): Promise<void> {
    await this.#ask("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false })
    await this.#ask("Page.enable", {})
    await this.#ask("Network.enable", {})
    let isLoaded: () => void = () => undefined
    const load = new Promise<void>((resolve) => (isLoaded = resolve))
    using _ = this.#cdp.listen(this.#session, (method, params) => {
      if (method === "Page.loadEventFired") isLoaded()
      if (method === "Network.responseReceived" && params["type"] === "Document") {
        const { status } = params["response"] as { status?: unknown }
        if (typeof status === "number" && status > 0) this.#status ??= status
      }
    })
    const { errorText } = await this.#ask("Page.navigate", { url })
    if (typeof errorText === "string" && errorText !== "")
      throw new Fault("unavailable", `the page did not load: ${errorText}`, {
        hint: "does something listen there, and may the session reach it?",
      })
    await this.#within(load)
    if (waitMs > 0) await this.#clock.sleep(waitMs, this.#signal)
  }

  /** A page that goes on loading for ever is looked at as it is. */
  async #within(load: Promise<void>): Promise<void> {
    const enough = new AbortController()
    const signal = AbortSignal.any([this.#signal, enough.signal])
    const patience = this.#clock.sleep(browserLimits.loadMs, signal).catch(() => undefined)
    await Promise.race([load, patience])
    enough.abort()
    this.#signal.throwIfAborted()
  }

  async #whole(): Promise<Result> {
    const { cssContentSize } = await this.#ask("Page.getLayoutMetrics", {})
    const { width, height } = cssContentSize as { width: number; height: number }
    return { clip: { x: 0, y: 0, width, height: Math.min(height, browserLimits.heightMax), scale: 1 } }
  }

  async #value(expression: string): Promise<string> {
    const { result } = await this.#ask("Runtime.evaluate", { expression, returnByValue: true })
    const { value } = (result ?? {}) as { value?: unknown }
    if (typeof value !== "string") throw new Fault("unavailable", "the page could not be read")
    return value
  }

  #ask(method: string, params: Result): Promise<Result> {
    return this.#cdp.ask(method, params, { signal: this.#signal, page: this.#session })
  }
}

/** Also when whoever asked has gone: the page must not stay. */
async function close(cdp: Cdp, context: string): Promise<void> {
  if (context === "") return
  const signal = AbortSignal.timeout(browserLimits.answerMs)
  await cdp.ask("Target.disposeBrowserContext", { browserContextId: context }, { signal }).catch(() => undefined)
}

function textIn(result: Result, field: string): string {
  const value = result[field]
  if (typeof value !== "string") throw new Fault("internal", `the browser's answer has no ${field}`)
  return value
}
