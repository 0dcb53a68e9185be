import { spawn } from "node:child_process"
import { once } from "node:events"
import { Agent, request, type IncomingMessage } from "node:http"

interface Asked {
  readonly method: "GET" | "POST" | "DELETE"
  readonly path: string
  readonly body?: object
}

/** The little of Docker's API that is measured, over its socket on one connection: without the client program, which alone takes some 30 ms. */
export class Engine implements Disposable {
  readonly #socket: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })

  constructor(socket: string) {
    this.#socket = socket
  }

  async isUp(): Promise<boolean> {
    return await this.#ask({ method: "GET", path: "/_ping" }).then(
      () => true,
      () => false,
    )
  }

  async version(): Promise<string> {
    const { Version } = (await this.#ask({ method: "GET", path: "/version" })) as { Version: string }
    return Version
  }

  /** A folder as an image of one layer, with the owners it has. */
  async import(folder: string, name: string): Promise<void> {
    const tar = spawn("tar", ["-C", folder, "--numeric-owner", "-c", "."], { stdio: ["ignore", "pipe", "inherit"] })
    const sending = this.#request("POST", `/images/create?fromSrc=-&repo=${name}&tag=latest`, {
      "content-type": "application/x-tar",
    })
    tar.stdout.pipe(sending)
    const [answer] = (await once(sending, "response")) as [IncomingMessage]
    const said = await textOf(answer)
    if (answer.statusCode !== 200 || said.includes('"error"')) throw new Error(`docker could not import: ${said}`)
  }

  async create(body: object): Promise<string> {
    const { Id } = (await this.#ask({ method: "POST", path: "/containers/create", body })) as { Id: string }
    return Id
  }

  async start(id: string): Promise<void> {
    await this.#ask({ method: "POST", path: `/containers/${id}/start` })
  }

  /** Until it has ended; with what. */
  async wait(id: string): Promise<number> {
    const { StatusCode } = (await this.#ask({ method: "POST", path: `/containers/${id}/wait` })) as {
      StatusCode: number
    }
    return StatusCode
  }

  async remove(id: string): Promise<void> {
    await this.#ask({ method: "DELETE", path: `/containers/${id}?force=1&v=1` })
  }

  /** Runs a command to its end: its output ends when it does. */
  async exec(id: string, argv: readonly string[]): Promise<void> {
    const body = { Cmd: argv, AttachStdout: true, AttachStderr: true }
    const { Id } = (await this.#ask({ method: "POST", path: `/containers/${id}/exec`, body })) as { Id: string }
    await this.#ask({ method: "POST", path: `/exec/${Id}/start`, body: { Detach: false, Tty: false } })
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }

  async #ask({ method, path, body }: Asked): Promise<unknown> {
    const sending = this.#request(method, path, body ? { "content-type": "application/json" } : {})
    sending.end(body ? JSON.stringify(body) : undefined)
    const [answer] = (await once(sending, "response")) as [IncomingMessage]
    const said = await textOf(answer)
    if ((answer.statusCode ?? 500) >= 300) throw new Error(`docker: ${method} ${path}: ${answer.statusCode} ${said}`)
    return answer.headers["content-type"]?.startsWith("application/json") === true ? JSON.parse(said) : said
  }

  #request(method: string, path: string, headers: Readonly<Record<string, string>>): ReturnType<typeof request> {
    return request({ socketPath: this.#socket, agent: this.#agent, method, path: `/v1.41${path}`, headers })
  }
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
