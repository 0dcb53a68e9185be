import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core"

const screenshots = join(import.meta.dirname, "screenshots")
const chromiumPath = "/usr/bin/chromium"

/** What a browser complains about by itself when a request was answered with a fault that the page expects and shows. */
const expected = [/Failed to load resource: the server responded with a status of 401/]

/** A real Chromium. Each person has a context of their own: cookies, storage, and what the console said. */
export class Chromium implements AsyncDisposable {
  readonly #browser: Browser

  private constructor(browser: Browser) {
    this.#browser = browser
  }

  /** `mapped`: a host and port, and where its connections go instead. */
  static async open(mapped?: readonly [from: string, to: string]): Promise<Chromium> {
    await mkdir(screenshots, { recursive: true })
    const rules = mapped ? [`--host-resolver-rules=MAP ${mapped[0]} ${mapped[1]}`] : []
    return new Chromium(await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox", ...rules] }))
  }

  async person(options: Parameters<Browser["newContext"]>[0] = {}): Promise<Person> {
    const context = await this.#browser.newContext({
      viewport: { width: 1280, height: 800 },
      colorScheme: "dark",
      ...options,
    })
    return new Person(context, await context.newPage())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#browser.close()
  }
}

/** Somebody at a browser. */
export class Person implements AsyncDisposable {
  readonly page: Page
  /** Errors of the console and of scripts, in order; what a test expects of them is nothing. */
  readonly complaints: string[] = []
  readonly #context: BrowserContext

  constructor(context: BrowserContext, page: Page) {
    this.#context = context
    this.page = page
    page.on("console", (message) => {
      const text = message.text()
      if (message.type() === "error" && !expected.some((known) => known.test(text))) this.complaints.push(text)
    })
    page.on("pageerror", (error) => this.complaints.push(String(error)))
  }

  /** As another browser could have it: signed in as the same user. */
  get cookies(): ReturnType<BrowserContext["storageState"]> {
    return this.#context.storageState()
  }

  /** Into a folder that git does not keep. */
  async shot(name: string): Promise<void> {
    await this.page.screenshot({ path: join(screenshots, `${name}.png`), animations: "disabled" })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#context.close()
  }
}

/** The link that was printed at the first start. */
export function printedLink(said: string): string {
  const [link] = /https?:\/\/\S+\/join#[\w-]+/.exec(said) ?? []
  if (link === undefined) throw new Error(`no link was printed: ${said}`)
  return link
}
