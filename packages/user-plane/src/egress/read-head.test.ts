import { once } from "node:events"
import { connect, createServer, type AddressInfo, type Socket } from "node:net"
import { closeServer } from "@warren/base/unix-socket.ts"
import { expect, test } from "vitest"
import { readHead, type Head } from "./read-head.ts"

/** Three bytes. */
const three = (bytes: Buffer): Head<string> | undefined =>
  bytes.length < 3 ? undefined : { value: bytes.toString("latin1", 0, 3), used: 3 }

/** Both ends of a connection, nothing of which was read. */
async function withPair(work: (ours: Socket, theirs: Socket) => Promise<void>): Promise<void> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const theirs = connect((server.address() as AddressInfo).port, "127.0.0.1")
  const [ours] = (await once(server, "connection")) as [Socket]
  try {
    await work(ours, theirs)
  } finally {
    await closeServer(server, [ours, theirs])
  }
}

test("takes what it needs, however it comes, and leaves the rest to be read", () =>
  withPair(async (ours, theirs) => {
    for (const piece of ["a", "b"]) theirs.write(piece)
    const head = readHead(ours, 3, three)
    theirs.end("c and the rest")
    expect(await head).toBe("abc")
    let rest = ""
    for await (const chunk of ours) rest += String(chunk)
    expect(rest).toBe(" and the rest")
  }))

test("refuses more than it may be, when that is still not enough", () =>
  withPair(async (ours, theirs) => {
    theirs.write("four")
    await expect(readHead(ours, 3, () => undefined)).rejects.toMatchObject({ reason: "bad-request" })
  }))

test("says that the other side has gone: while it waits, and when it had gone before", () =>
  withPair(async (ours, theirs) => {
    const waiting = readHead(ours, 3, three)
    theirs.end("ab")
    await expect(waiting).rejects.toMatchObject({ code: "cancelled" })
    expect(ours.readableEnded).toBe(true)
    await expect(readHead(ours, 3, three)).rejects.toMatchObject({ code: "cancelled" })
  }))

test("says so, too, of a connection that was cut", () =>
  withPair(async (ours) => {
    ours.destroy()
    await once(ours, "close")
    await expect(readHead(ours, 3, three)).rejects.toMatchObject({ code: "cancelled" })
  }))
