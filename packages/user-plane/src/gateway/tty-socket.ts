import { Fault } from "@warren/base/fault.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import type { MessageSocket } from "@warren/protocol/http/message-socket.ts"
import { z } from "zod"
import { gatewayLimits } from "./limits.ts"
import { GatewayRefusal } from "./refusal.ts"
import type { Viewer } from "../terminals/viewer.ts"

const side = z.int().min(1).max(1_000)
const Window = z.object({ columns: side, rows: side })

/** The first byte of each message, as ttyd's clients know them. */
const up = { input: "0", resize: "1", pause: "2", resume: "3" } as const
const down = { output: Buffer.from("0"), title: Buffer.from("1") } as const

/** What a client says first: its window, beside a token that is not looked at, because it was let in already. */
export async function readWindow(
  client: MessageSocket,
): Promise<{ columns?: number | undefined; rows?: number | undefined }> {
  const late = setTimeout(() => client[Symbol.dispose](), gatewayLimits.headMs)
  const message = await client.next().finally(() => clearTimeout(late))
  if (message === undefined) throw new GatewayRefusal(400, "the client left before it said anything")
  return Window.partial().catch({}).parse(jsonOf(message))
}

/** A terminal as ttyd speaks it. It ends with the client; the terminal goes on. */
export async function ttySocket(client: MessageSocket, viewer: Viewer, title: string): Promise<void> {
  const pace = new Pace()
  try {
    await client.send(down.title, Buffer.from(title))
    const ended = await Promise.race([show(client, viewer, pace), type(client, viewer, pace)])
    client.close(1000, ended ?? "")
  } catch (thrown) {
    client.close(1011, Fault.from(thrown).message)
  } finally {
    pace.resume()
  }
}

async function show(client: MessageSocket, viewer: Viewer, pace: Pace): Promise<string | undefined> {
  for (let item = await viewer.next(); item !== undefined; item = await viewer.next()) {
    if (item instanceof Chunk) await client.send(down.output, item.bytes)
    else if (item.ev === "exit") return `ended with ${item.signal ?? item.exitCode}`
    await pace.wait()
  }
  return undefined
}

async function type(client: MessageSocket, viewer: Viewer, pace: Pace): Promise<undefined> {
  for (let message = await client.next(); message !== undefined; message = await client.next()) {
    const [kind, rest] = [message.subarray(0, 1).toString(), message.subarray(1)]
    if (kind === up.input) await viewer.write(rest)
    else if (kind === up.pause) pace.pause()
    else if (kind === up.resume) pace.resume()
    else if (kind === up.resize) {
      const { data } = Window.safeParse(jsonOf(rest))
      if (data) viewer.send({ op: "resize", cols: data.columns, rows: data.rows })
    }
  }
  return undefined
}

/** Held while the client says so. */
class Pace {
  #going: Promise<void> | undefined
  #go: () => void = () => undefined

  pause(): void {
    this.#going ??= new Promise((resolve) => (this.#go = resolve))
  }

  resume(): void {
    this.#go()
    this.#going = undefined
  }

  async wait(): Promise<void> {
    await this.#going
  }
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}
