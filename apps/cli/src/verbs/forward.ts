import { once } from "node:events"
import { createServer, type Server, type Socket } from "node:net"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import { Scope } from "@warren/base/scope.ts"
import { closeServer } from "@warren/base/unix-socket.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import { readPort } from "../arguments/values.ts"
import { word } from "../arguments/word.ts"
import { withRunner, type Desk } from "../desk.ts"
import type { Runner } from "../runner/runner.ts"
import { verb } from "../verb.ts"

const connectionsMax = 256

export const forwardVerb = verb({
  name: "forward",
  group: "Programs",
  doc: "Listen here, on loopback only, for what listens in a session, until Ctrl-C.",
  examples: ["warren forward my-session 3000", "warren forward my-session 3000:8080 5432"],
  flags: {},
  words: {
    session: word.one("SESSION", "Id or name of the session.", { completes: "session" }),
    ports: word.some("PORT[:LOCAL]", "A port inside, and which one here when not the same (0: any that is free)."),
  },
  run: ({ words: { session, ports } }, desk) =>
    withRunner(desk, async (runner) => {
      await runner.call("session.get", { id: session })
      await using scope = new Scope()
      for (const { inside, local } of ports.map(portsOf)) {
        const server = await listen(local)
        const sockets = new Set<Socket>()
        scope.defer(() => closeServer(server, sockets))
        server.on("connection", (socket) => {
          sockets.add(socket)
          socket.once("close", () => sockets.delete(socket))
          carry(runner, desk, { session, port: inside }, socket).catch((thrown: unknown) => {
            socket.destroy()
            if (!desk.signal.aborted) desk.output.note(`${inside}: ${Fault.from(thrown).message}`)
          })
        })
        const address = `127.0.0.1:${portOf(server)}`
        await desk.output.show({ session, port: inside, address }, () => `${address} is port ${inside} of ${session}`)
      }
      await once(desk.signal, "abort")
    }),
})

function portsOf(text: string): { inside: number; local: number } {
  const [inside = "", local, more] = text.split(":")
  if (more !== undefined) throw new Fault("invalid", `"${text}" is not PORT or PORT:LOCAL`)
  const port = readPort(inside, "PORT")
  return { inside: port, local: local === undefined ? port : local === "0" ? 0 : readPort(local, "LOCAL") }
}

async function listen(port: number): Promise<Server> {
  const server = createServer({ allowHalfOpen: true })
  server.maxConnections = connectionsMax
  server.listen(port, "127.0.0.1")
  try {
    await once(server, "listening")
    return server
  } catch (cause) {
    if (errnoOf(cause) !== "EADDRINUSE") throw new Fault("unavailable", `cannot listen on port ${port}`, { cause })
    throw new Fault("conflict", `port ${port} is taken here`, { cause, hint: "say another: PORT:LOCAL" })
  }
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === "object" && address ? address.port : 0
}

/** One connection: bytes both ways, and the end of either direction passed on. */
async function carry(runner: Runner, desk: Desk, to: { session: string; port: number }, socket: Socket): Promise<void> {
  const gone = new AbortController()
  socket.once("close", () => gone.abort(new Fault("cancelled", "the connection closed")))
  socket.on("error", () => undefined)
  const signal = AbortSignal.any([desk.signal, gone.signal])
  await using conversation = await runner.open("port.connect", to, signal)
  const sending = (async () => {
    // The end of what comes from here is not the end of what goes there.
    const pieces = socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
    for await (const piece of pieces) await conversation.write(piece)
    conversation.send({ op: "eof" })
  })().catch(() => undefined)
  try {
    for (let item = await conversation.next(); item !== undefined; item = await conversation.next()) {
      if (item instanceof Chunk && !socket.write(Buffer.from(item.bytes))) await once(socket, "drain", { signal })
    }
    socket.end()
    await sending
  } catch (thrown) {
    if (!gone.signal.aborted) throw thrown
  }
}
