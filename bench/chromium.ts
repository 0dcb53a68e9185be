import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { WebSocket } from "ws"
import type { Context } from "./metric.ts"

const program = "/usr/bin/chromium"

interface Told {
  readonly id?: number
  readonly sessionId?: string
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

type Answer = Readonly<Record<string, unknown>>

/** A real browser, spoken to as its own developer tools do. */
export class Chromium {
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, (told: Told) => void>()
  readonly #heard = new Set<(told: Told) => void>()
  #last = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on("message", (message: Buffer) => {
      const told = JSON.parse(message.toString()) as Told
      if (told.id === undefined) for (const hear of this.#heard) hear(told)
      else this.#waiting.get(told.id)?.(told)
    })
  }

  /** Skips the metric where there is none. The context's scope ends it. */
  static async start(context: Context): Promise<Chromium> {
    if (!existsSync(program)) context.skip(`${program} is not installed`)
    const profile = `--user-data-dir=${join(context.folder, "chromium")}`
    const how = ["--headless=new", "--no-sandbox", "--no-first-run", "--remote-debugging-port=0", profile]
    const child = spawn(program, [...how, "about:blank"], { stdio: ["ignore", "ignore", "pipe"] })
    const gone = once(child, "exit")
    context.scope.defer(async () => {
      child.kill("SIGKILL")
      await gone
    })
    const socket = new WebSocket(await addressOf(child.stderr), { perMessageDeflate: false })
    context.scope.defer(() => socket.terminate())
    await once(socket, "open")
    return new Chromium(socket)
  }

  ask(method: string, params: object = {}, sessionId?: string): Promise<Answer> {
    const id = ++this.#last
    const answered = new Promise<Answer>((resolve, reject) => {
      this.#waiting.set(id, ({ result, error }) => {
        this.#waiting.delete(id)
        if (error) reject(new Error(`${method}: ${error.message}`))
        else resolve(result as Answer)
      })
    })
    this.#socket.send(JSON.stringify({ id, method, params, ...(sessionId === undefined ? {} : { sessionId }) }))
    return answered
  }

  /** Is told everything that happens in a tab, until it is called. */
  hear(sessionId: string, each: (method: string, params: Answer) => void): () => void {
    const hear = (told: Told): void => {
      if (told.sessionId === sessionId && told.method !== undefined) each(told.method, told.params ?? {})
    }
    this.#heard.add(hear)
    return () => this.#heard.delete(hear)
  }
}

async function addressOf(stderr: NodeJS.ReadableStream): Promise<string> {
  let said = ""
  for await (const piece of stderr) {
    said += String(piece)
    const [, address] = /listening on (ws:\/\/\S+)/.exec(said) ?? []
    if (address === undefined) continue
    // What it complains of later is nobody's, and must not fill the pipe.
    stderr.resume()
    return address
  }
  throw new Error(`Chromium did not start: ${said}`)
}
