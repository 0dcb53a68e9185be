import { generateKeyPairSync } from "node:crypto"
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { connectUnix } from "@warren/base/unix-socket.ts"
import { RpcClient } from "@warren/protocol/rpc/client.ts"
import { openStream } from "@warren/protocol/rpc/stream.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"
import { describe, expect, test } from "vitest"
import { accessLimits } from "./access-log.ts"
import { Door } from "./testing/door.ts"

const about = { call: "session.get", session: "one" } as const
const get = (door: Door, statement?: string, id = "one") => door.client.call("session.get", { id }, { statement })

describe("the control plane's door", () => {
  test("is for its group and its owner, and nobody else", async () => {
    await using door = await Door.open()
    expect(statSync(door.socket).mode & 0o777).toBe(0o660)
  })

  test("answers what a statement was signed for, and the user can read that it was asked", async () => {
    await using door = await Door.open(["one"])
    expect(await get(door, door.statement({ ...about, token: "tok_1" }))).toMatchObject({ name: "one" })
    await expect(door.ask("session.get", { id: "two" })).rejects.toMatchObject({ code: "not_found" })
    const { entries } = (await door.ask("access.read", { limit: 10 })) as { entries: object[] }
    expect(entries).toEqual([
      {
        ...{ time: new Date(door.clock.now()).toISOString(), user: "alice", call: "session.get", session: "one" },
        ...{ token: "tok_1", statement: expect.stringMatching(/^stm_/), result: "ok" },
      },
      expect.objectContaining({ call: "session.get", session: "two", result: "not_found" }),
    ])
    expect(statSync(door.folder.at("access.log")).mode & 0o777).toBe(0o600)
  })

  test.each<[string, (door: Door) => string | undefined, string]>([
    ["no statement", () => undefined, "a signed statement is missing"],
    ["another user's", (door) => door.statement({ ...about, user: "bob" }), "another user"],
    ["one for another call", (door) => door.statement({ call: "session.delete", session: "one" }), "another call"],
    ["one for another session", (door) => door.statement({ ...about, session: "two" }), "another session"],
    ["one for no session", (door) => door.statement({ call: "session.get" }), "another session"],
    ["one for another scope", (door) => door.statement({ ...about, scope: "exec" }), "another scope"],
    ["another key's", (door) => door.statement(about, generateKeyPairSync("ed25519").privateKey), "not signed"],
    ["a changed one", (door) => `A${door.statement(about).slice(1)}`, "not signed"],
    ["nonsense", () => "nonsense", "not signed"],
    ["an expired one", (door) => expired(door), "expired"],
  ])("refuses %s, does nothing, and says so in the log", async (_, make, reason) => {
    await using door = await Door.open(["one"])
    await expect(get(door, make(door))).rejects.toMatchObject({
      code: "forbidden",
      message: expect.stringContaining(reason),
    })
    const [entry] = await door.access.read(10)
    expect(entry).toMatchObject({ user: "", call: "session.get", session: "one", result: "forbidden" })
    expect(entry?.reason).toContain(reason)
  })

  test("feeds and streams need one, too", async () => {
    await using door = await Door.open(["one"])
    const feed = door.client.feed("session.follow", {})
    await expect(feed.next()).rejects.toMatchObject({ code: "forbidden" })
    const input = { session: "one", argv: ["true"] }
    const open = async (statement?: string) =>
      openStream(await connectUnix(door.socket), userPlane, "process.exec", input, undefined, statement)
    await expect(open()).rejects.toMatchObject({ code: "forbidden" })
    await expect(open(door.statement(about))).rejects.toMatchObject({ code: "forbidden" })
    const statement = door.statement({ call: "process.exec", session: "one" })
    await expect(open(statement)).rejects.toMatchObject({ code: "not_found" })
    expect((await door.access.read(10)).map(({ call, result }) => `${call} ${result}`)).toEqual([
      "session.follow forbidden",
      "process.exec forbidden",
      "process.exec forbidden",
      "process.exec opened",
      "process.exec not_found",
    ])
  })

  test("a call that does not exist gets nothing either", async () => {
    await using door = await Door.open()
    const call = "nothing.here" as "session.get"
    const client = new RpcClient(await connectUnix(door.socket), { ...userPlane, [call]: userPlane["session.get"] })
    await expect(client.call(call, { id: "x" })).rejects.toMatchObject({ code: "forbidden" })
    await client[Symbol.asyncDispose]()
  })

  test("a key that is not there yet is found when it is; a new one ends the old one at once", async () => {
    await using door = await Door.open(["one"])
    const before = door.statement(about)
    await get(door, before)
    const next = generateKeyPairSync("ed25519")
    door.publish(next.publicKey)
    await door.clock.advance(1_000)
    await get(door, door.statement(about, next.privateKey))
    await door.clock.advance(1_000)
    await expect(get(door, before)).rejects.toMatchObject({ code: "forbidden" })
    writeFileSync(door.folder.at("statement.pub"), "nonsense")
    await door.clock.advance(1_000)
    await expect(get(door, door.statement(about))).rejects.toMatchObject({ code: "forbidden" })
  })

  test("a flood of refusals does not push out what happened", async () => {
    await using door = await Door.open(["one"])
    await get(door, door.statement(about))
    for (let n = 0; n < accessLimits.refusalsPerMinute + 50; n++) await get(door).catch(() => undefined)
    await door.clock.advance(61_000)
    await get(door).catch(() => undefined)
    const entries = await door.access.read(1_000)
    expect(entries).toHaveLength(1 + accessLimits.refusalsPerMinute + 2)
    expect(entries.at(-2)?.reason).toBe("50 more were refused in a minute")
  })

  test("a log with a line cut by a crash is still read", async () => {
    await using door = await Door.open(["one"])
    await get(door, door.statement(about))
    const file = door.folder.at("access.log")
    chmodSync(file, 0o600)
    writeFileSync(file, `${readFileSync(file, "utf8")}{"time":"2026`, { mode: 0o600 })
    expect(await door.access.read(10)).toHaveLength(1)
  })
})

function expired(door: Door): string {
  const statement = door.statement(about)
  void door.clock.advance(66_000)
  return statement
}
