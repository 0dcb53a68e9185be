import type { IncomingMessage, ServerResponse } from "node:http"
import { Loopback } from "../../egress/testing/egress-system.ts"

interface Pull {
  readonly number: number
  readonly head: string
  readonly base: string
  readonly title: string
  readonly draft: boolean
}

/** As much of GitHub's REST as pull requests need, for one repository and one key. */
export class ForgeServer implements AsyncDisposable {
  readonly pulls: Pull[] = []
  readonly asked: string[] = []
  /** What it answers instead, when set. */
  answer: { readonly status: number; readonly body: string } | undefined
  #server!: Loopback

  static async start(path: string, key: string): Promise<ForgeServer> {
    const forge = new ForgeServer()
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const body = await bodyOf(request)
      forge.asked.push(`${request.method} ${request.url} ${request.headers["user-agent"]}`)
      const { status, body: text } = forge.answer ?? forge.#answer(path, key, request, body)
      response.writeHead(status, { "content-type": "application/json" }).end(text)
    }
    forge.#server = await Loopback.http((request, response) => void answer(request, response))
    return forge
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server[Symbol.asyncDispose]()
  }

  #answer(path: string, key: string, request: IncomingMessage, text: string): { status: number; body: string } {
    const said = (status: number, body: unknown) => ({ status, body: JSON.stringify(body) })
    if (request.headers.authorization !== `Bearer ${key}`)
      return said(401, { message: `Bad credentials ${request.headers.authorization ?? ""}` })
    const url = new URL(request.url ?? "", "http://forge")
    if (url.pathname !== `/repos/${path}/pulls`) return said(404, { message: "Not Found" })
    const shown = (pull: Pull) => ({ number: pull.number, html_url: `https://github.com/${path}/pull/${pull.number}` })
    if (request.method === "GET") {
      const [, head] = (url.searchParams.get("head") ?? "").split(":")
      return said(
        200,
        this.pulls.filter((pull) => pull.head === head && pull.base === url.searchParams.get("base")).map(shown),
      )
    }
    const { head, base, title, draft } = JSON.parse(text) as Pull
    if (!title) return said(422, { message: "Validation Failed" })
    if (this.pulls.some((pull) => pull.head === head && pull.base === base))
      return said(422, {
        message: "Validation Failed",
        errors: [{ message: `A pull request already exists for ${head}.` }],
      })
    const pull = { number: this.pulls.length + 1, head, base, title, draft }
    this.pulls.push(pull)
    return said(201, shown(pull))
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ""
  for await (const piece of request) text += String(piece)
  return text
}
