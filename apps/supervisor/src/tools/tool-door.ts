import { chmodSync, mkdirSync, rmSync } from "node:fs"
import { createServer, type Server, type Socket } from "node:net"
import { dirname } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { toolLimits } from "@warren/protocol/hub/tools.ts"
import { ToolAsked } from "@warren/protocol/supervisor/tool-lines.ts"
import type { Json, ToolAnswer } from "../hub/supervisor.ts"
import { hear } from "../stdio/speak.ts"

const connectionsMax = 32

export type Ask = (tool: string, input: Json, signal: AbortSignal) => Promise<ToolAnswer>

/**
 * Where programs in the sandbox ask for the agent's tools: a socket only its user opens, one JSON object a line. What they ask goes
 * to the hub on the supervisor's own line, so that it is this session that asks, whoever it is in here.
 */
export class ToolDoor implements AsyncDisposable {
  readonly path: string
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(path: string, server: Server, ask: Ask) {
    this.path = path
    this.#server = server
    server.maxConnections = connectionsMax
    server.on("connection", (socket) => {
      this.#sockets.add(socket)
      socket.on("error", () => undefined)
      socket.once("close", () => this.#sockets.delete(socket))
      void serve(socket, ask).catch(() => socket.destroy())
    })
  }

  static open(path: string, ask: Ask): Promise<ToolDoor> {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    rmSync(path, { force: true })
    const server = createServer()
    return new Promise((resolve, reject) => {
      server.once("error", reject)
      server.listen(path, () => {
        chmodSync(path, 0o600)
        resolve(new ToolDoor(path, server, ask))
      })
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    rmSync(this.path, { force: true })
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}

/** Each line is answered by itself: a slow one holds nobody back. Whoever leaves wants no answers. */
async function serve(socket: Socket, ask: Ask): Promise<void> {
  const gone = new AbortController()
  socket.once("close", () => gone.abort())
  let open = 0
  const answer = async (line: string): Promise<void> => {
    const asked = parsed(line)
    if (!asked)
      return void socket.write(`${JSON.stringify({ fault: { code: "invalid", message: "that is no request" } })}\n`)
    const { id, tool, input } = asked
    try {
      if (open >= toolLimits.callsMax) throw new Fault("limit", `${toolLimits.callsMax} tools are asked already`)
      open++
      try {
        const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(toolLimits.callMs)])
        const { out, fault } = await ask(tool, input, signal)
        socket.write(`${JSON.stringify(fault ? { id, fault } : { id, out: out ?? null })}\n`)
      } finally {
        open--
      }
    } catch (failure) {
      if (!gone.signal.aborted) socket.write(`${JSON.stringify({ id, fault: Fault.from(failure).toData() })}\n`)
    }
  }
  for await (const line of hear(socket)) {
    if (typeof line !== "string") return void socket.destroy()
    if (line.trim() !== "") void answer(line)
  }
}

function parsed(line: string): ToolAsked | undefined {
  try {
    return ToolAsked.parse(JSON.parse(line))
  } catch {
    return undefined
  }
}
