import { once } from "node:events"
import { mkdir, rename, stat, writeFile } from "node:fs/promises"
import { createServer, type Socket } from "node:net"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { Fault } from "./fault.ts"
import { TempFolder } from "./testing/temp-folder.ts"
import { closeServer, connectUnix, listenUnix } from "./unix-socket.ts"

let folder: TempFolder
beforeEach(async () => void (folder = await TempFolder.make()))
afterEach(() => folder[Symbol.asyncDispose]())

const pathOf = (bytes: number): string =>
  folder.at("ü".repeat(2) + "s".repeat(bytes - Buffer.byteLength(folder.path) - 5))

/** How it was for each; then they go. */
async function comeAtOnce(count: number): Promise<PromiseSettledResult<Socket>[]> {
  const came = await Promise.allSettled(Array.from({ length: count }, () => connectUnix(folder.at("a.sock"))))
  for (const one of came) if (one.status === "fulfilled") one.value.on("error", () => undefined).destroy()
  return came
}

describe("a Unix socket", () => {
  test("carries bytes, and only its owner may connect", async () => {
    const sockets: Socket[] = []
    const server = await listenUnix(folder.at("a.sock"), (socket) => {
      sockets.push(socket)
      socket.pipe(socket)
    })
    expect((await stat(folder.at("a.sock"))).mode & 0o777).toBe(0o600)
    const client = await connectUnix(folder.at("a.sock"))
    client.write("hello")
    expect(String((await once(client, "data"))[0])).toBe("hello")
    const closed = once(client, "close")
    await closeServer(server, sockets)
    await closed
    await expect(connectUnix(folder.at("a.sock"))).rejects.toMatchObject({ code: "unavailable" })
  })

  test("lets in a thousand who come at once", async () => {
    const sockets: Socket[] = []
    const server = await listenUnix(folder.at("a.sock"), (socket) => sockets.push(socket))
    const came = await comeAtOnce(1_000)
    expect(came.filter(({ status }) => status === "rejected")).toEqual([])
    await closeServer(server, sockets)
  })

  test("says to those for whom there is no room to wait that there is none", async () => {
    const sockets: Socket[] = []
    const server = createServer((socket) => sockets.push(socket)).listen({ path: folder.at("a.sock"), backlog: 1 })
    await once(server, "listening")
    const came = await comeAtOnce(20)
    const refused = came.filter((one) => one.status === "rejected").map((one) => (one.reason as Fault).code)
    expect([refused.length > 0, new Set(refused)]).toEqual([true, new Set(["limit"])])
    expect(came.some(({ status }) => status === "fulfilled")).toBe(true)
    await closeServer(server, sockets)
  })

  test("may have a path as long as the kernel's limit and not one byte longer", async () => {
    expect(Buffer.byteLength(pathOf(107))).toBe(107)
    const server = await listenUnix(pathOf(107), (socket) => socket.end())
    ;(await connectUnix(pathOf(107))).destroy()
    await closeServer(server, [])
    const refused = { code: "invalid", hint: expect.stringContaining("WARREN_HOME") }
    await expect(listenUnix(pathOf(108), () => undefined)).rejects.toMatchObject(refused)
    await expect(connectUnix(pathOf(108))).rejects.toMatchObject(refused)
    expect(await folder.names()).toEqual([])
  })

  test("replaces what an earlier process left behind", async () => {
    const path = folder.at("a.sock")
    await writeFile(path, "left over")
    const first = await listenUnix(path, (socket) => socket.end())
    const second = await listenUnix(path, (socket) => socket.end("second"))
    const client = await connectUnix(path)
    expect(String((await once(client, "data"))[0])).toBe("second")
    client.destroy()
    await Promise.all([closeServer(first, []), closeServer(second, [])])
  })

  test("does not replace a folder, and says which", async () => {
    await mkdir(folder.at("a.sock"))
    await writeFile(folder.at("a.sock", "file"), "kept")
    const listening = listenUnix(folder.at("a.sock"), (socket) => socket.end())
    const hint = expect.any(String)
    await expect(listening).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("a.sock"),
      hint,
    })
    expect(await folder.names()).toEqual(["a.sock"])
  })

  test.each([
    ["nothing there", async () => undefined],
    ["a plain file", (path: string) => writeFile(path, "")],
    ["a socket nobody listens to", stale],
  ])("that nobody answers is unavailable: %s", async (_, prepare) => {
    const path = folder.at("a.sock")
    await prepare(path)
    await expect(connectUnix(path)).rejects.toMatchObject({ code: "unavailable", message: `nobody listens at ${path}` })
  })

  test("connecting stops with the caller's reason", async () => {
    const server = await listenUnix(folder.at("a.sock"), (socket) => socket.resume())
    const reason = new Error("mine")
    await expect(connectUnix(folder.at("a.sock"), AbortSignal.abort(reason))).rejects.toBe(reason)
    const controller = new AbortController()
    const connecting = connectUnix(folder.at("a.sock"), controller.signal)
    controller.abort(reason)
    await expect(connecting).rejects.toBe(reason)
    await closeServer(server, [])
  })

  test("that is connected does not mind a signal that comes later", async () => {
    const sockets: Socket[] = []
    const server = await listenUnix(folder.at("a.sock"), (socket) => sockets.push(socket))
    const controller = new AbortController()
    const socket = await connectUnix(folder.at("a.sock"), controller.signal)
    controller.abort()
    expect(socket.destroyed).toBe(false)
    socket.destroy()
    await closeServer(server, sockets)
  })
})

/** Leaves a socket file behind, as a process that was killed does. */
async function stale(path: string): Promise<void> {
  const server = createServer()
  server.listen(`${path}.first`)
  await once(server, "listening")
  await rename(`${path}.first`, path)
  server.close()
  await once(server, "close")
}
