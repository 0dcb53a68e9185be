import { once } from "node:events"
import { connect, createServer, type Server, type Socket } from "node:net"
import { ManualClock, systemClock } from "@warren/base/clock.ts"
import { silentLog } from "@warren/base/log.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { hubLimits } from "./frames.ts"
import { HubClient } from "./hub-client.ts"
import { HubSocket } from "./hub-socket.ts"
import { ProcessMemory } from "./link-memory.ts"
import { HubDown, HubUp } from "./messages.ts"
import { ReliableLink } from "./reliable-link.ts"

let folder: TempFolder
let server: Server
let accept: (socket: Socket) => void
const sockets = new Set<Socket>()

beforeEach(async () => {
  folder = await TempFolder.make()
  server = createServer((socket) => {
    sockets.add(socket)
    accept(socket)
  }).listen(folder.at("hub.sock"))
  await once(server, "listening")
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  server.close()
  await folder[Symbol.asyncDispose]()
})

const dial = async (): Promise<Socket> => {
  const socket = connect(folder.at("hub.sock"))
  await once(socket, "connect")
  return socket
}
const admit = ({ url }: { readonly url: string }): string | undefined =>
  url.endsWith("token=good") ? undefined : "401 Unauthorized"

function supervisorLink(): ReliableLink<HubUp, HubDown> {
  return new ReliableLink<HubUp, HubDown>({
    link: "lnk",
    memory: new ProcessMemory<HubUp>(),
    vocabulary: HubDown,
    deliver: (_, note) => note(),
  })
}

describe("the connection of a supervisor", () => {
  test("is made again until it is replaced, and everything arrives once", async () => {
    const link = supervisorLink()
    const memory = new ProcessMemory<HubDown>()
    const titles: string[] = []
    const hub = new ReliableLink<HubDown, HubUp>({
      link: "lnk",
      memory,
      vocabulary: HubUp,
      deliver: (message, note) => {
        note()
        if (message.type === "title") titles.push(message.title)
      },
    })
    const arrived: HubSocket[] = []
    accept = (stream) =>
      void HubSocket.answer(stream, { clock: systemClock, admit }).then((socket) => {
        arrived.push(socket)
        hub.attach(socket)
        socket.listen((text) => hub.receive(socket, text))
      })
    const client = new HubClient({ link, dial, token: "good", clock: systemClock, log: silentLog })
    const over = client.run(new AbortController().signal)
    for (let n = 0; n < 5; n++) {
      for (let more = 0; more < 20; more++)
        link.send({ type: "title", channel: "web:default", title: `${n * 20 + more}` })
      await eventually(() => arrived.length === n + 1 && hub.isTogether)
      arrived.at(-1)?.cut()
    }
    await eventually(() => arrived.length === 6 && titles.length === 100)
    expect(titles).toEqual(Array.from({ length: 100 }, (_, index) => `${index}`))
    arrived.at(-1)?.replace()
    await over
  })

  test("is given up when it is turned away again and again", async () => {
    accept = (stream) => void HubSocket.answer(stream, { clock: systemClock, admit }).catch(() => undefined)
    const client = new HubClient({ link: supervisorLink(), dial, token: "bad", clock: systemClock, log: silentLog })
    await expect(client.run(new AbortController().signal)).rejects.toMatchObject({ code: "unauthenticated" })
  })

  test("ends with the signal, also while nobody is there", async () => {
    server.close()
    const stop = new AbortController()
    const client = new HubClient({
      link: supervisorLink(),
      dial,
      token: "good",
      clock: new ManualClock(),
      log: silentLog,
    })
    const over = client.run(stop.signal)
    stop.abort(new Error("enough"))
    await expect(over).rejects.toThrow("enough")
  })

  test("ends when the other end has been silent for too long", async () => {
    const clock = new ManualClock()
    let socket: HubSocket | undefined
    accept = (stream) => void HubSocket.answer(stream, { clock, admit }).then((made) => (socket = made))
    await HubSocket.ask(await dial(), { token: "good", clock: systemClock })
    await eventually(() => socket !== undefined && clock.sleeping === 1)
    await clock.advance(hubLimits.silenceMs)
    expect(await socket?.closed).toMatchObject({ code: 1006 })
  })

  test.each([
    ["something else", "POST / SOAP\r\n\r\n"],
    ["too much", `GET /${"x".repeat(20_000)}`],
  ])("is refused when it begins with %s", async (_, head) => {
    const refused = new Promise((resolve) => {
      accept = (stream) => void HubSocket.answer(stream, { clock: systemClock, admit }).catch(resolve)
    })
    const socket = await dial()
    socket.on("error", () => undefined)
    socket.write(head)
    expect(await refused).toMatchObject({ code: "unavailable" })
  })
})
