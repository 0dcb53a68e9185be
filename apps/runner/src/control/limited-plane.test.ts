import { userPlane } from "@warren/protocol/user-plane.ts"
import { describe, expect, test } from "vitest"
import { Door } from "./testing/door.ts"

describe("a token that sees only some sessions", () => {
  const ci = { namePrefix: "ci-" }

  test("finds those, by id and by name; the others are as absent as ones that never were", async () => {
    await using door = await Door.open(["ci-1", "other-1"])
    expect(await door.ask("session.get", { id: "ci-1" }, ci)).toMatchObject({ id: "ses_ci-1" })
    expect(await door.ask("session.get", { id: "ses_ci-1" }, ci)).toMatchObject({ name: "ci-1" })
    for (const id of ["other-1", "ses_other-1", "never-was"]) {
      const refused = await door.ask("session.get", { id }, ci).catch((thrown: unknown) => thrown)
      expect(refused).toMatchObject({
        code: "not_found",
        message: `there is no session "${id}"`,
        subject: `session:${id}`,
      })
    }
    expect(await door.ask("session.list", {}, ci)).toMatchObject({ items: [{ name: "ci-1" }] })
  })

  test("makes only such, and is given such a name when it asks for none", async () => {
    await using door = await Door.open(["ci-1", "other-1"])
    await expect(door.ask("session.create", { name: "x" }, ci)).rejects.toMatchObject({ code: "forbidden" })
    expect(await door.ask("session.create", { name: "ci-2" }, ci)).toMatchObject({ name: "ci-2" })
    expect(await door.ask("session.create", {}, ci)).toMatchObject({ name: expect.stringMatching(/^ci-\w{8}$/) })
    expect(await door.ask("session.fork", { id: "ci-1" }, ci)).toMatchObject({
      sessions: [{ name: expect.stringMatching(/^ci-/) }],
    })
    await expect(door.ask("session.fork", { id: "other-1" }, ci)).rejects.toMatchObject({ code: "not_found" })
    await expect(door.ask("session.update", { id: "ci-1", name: "mine" }, ci)).rejects.toMatchObject({
      code: "forbidden",
    })
    await expect(door.ask("session.getOrCreate", { key: "k" }, ci)).rejects.toMatchObject({ code: "forbidden" })
  })

  test("gets at the files of no other by way of a snapshot", async () => {
    await using door = await Door.open(["ci-1", "other-1"])
    await expect(door.ask("session.create", { from: "snp_other" }, ci)).rejects.toMatchObject({ code: "forbidden" })
    await expect(door.ask("snapshot.list", {}, ci)).rejects.toMatchObject({ code: "forbidden" })
    await expect(door.ask("snapshot.delete", { id: "snp_x" }, ci)).rejects.toMatchObject({ code: "forbidden" })
    const roll = (snapshot: string) => door.ask("session.rollback", { id: "ci-1", snapshot }, ci)
    await expect(roll("snp_ses_other-1")).rejects.toMatchObject({ code: "not_found" })
    expect(await roll("snp_ses_ci-1")).toMatchObject({ name: "ci-1" })
  })

  test("reads what was said with the agents of those, and with no other", async () => {
    await using door = await Door.open(["ci-1", "other-1"])
    expect(await door.ask("chat.get", { id: "of-ses_ci-1" }, ci)).toMatchObject({ sessionId: "ses_ci-1" })
    expect(await door.ask("chat.messages", { id: "of-ses_ci-1" }, ci)).toMatchObject({ items: [] })
    expect(await door.ask("chat.list", { sessionId: "ci-1" }, ci)).toMatchObject({ items: [{ id: "of-ses_ci-1" }] })
    await expect(door.ask("chat.list", {}, ci)).rejects.toMatchObject({ code: "forbidden" })
    for (const call of ["chat.get", "chat.messages"]) {
      for (const id of ["of-ses_other-1", "main"]) {
        await expect(door.ask(call, { id }, ci)).rejects.toMatchObject({ code: "not_found" })
      }
    }
    await expect(door.ask("chat.list", { sessionId: "other-1" }, ci)).rejects.toMatchObject({ code: "not_found" })
    expect(await door.ask("chat.get", { id: "main" }, { sessionsMax: 5 })).toMatchObject({ id: "main" })
  })

  test("reads no log that tells of the others", async () => {
    await using door = await Door.open(["ci-1", "other-1"])
    expect(await door.ask("logs.read", { session: "ci-1" }, ci)).toEqual({ entries: [] })
    await expect(door.ask("logs.read", { session: "other-1" }, ci)).rejects.toMatchObject({ code: "not_found" })
    for (const call of ["logs.read", "access.read"]) {
      await expect(door.ask(call, {}, ci)).rejects.toMatchObject({ code: "forbidden" })
    }
    const statement = door.statement({ call: "logs.follow", limits: ci })
    await expect(door.client.feed("logs.follow", {}, { statement }).next()).rejects.toMatchObject({ code: "forbidden" })
  })

  test("is thought of by every call there is: it names a session, or is about none, or about all", () => {
    const aboutNone = /^(health|logs|runner|image|pool|workspace|secrets|memory|db|access|chat)\./
    const known = new Set([
      "session.create",
      "session.getOrCreate",
      "session.list",
      "session.follow",
      "snapshot.delete",
    ])
    const unthought = Object.entries(userPlane).filter(([name, entry]) => {
      const field = name.startsWith("session.") ? "id" : "session"
      return !(field in entry.in.shape) && !aboutNone.test(name) && !known.has(name)
    })
    // One that is new here: say in `limited-plane.ts` what a token that sees only some sessions gets of it.
    expect(unthought.map(([name]) => name)).toEqual([])
  })

  test("compares those with each other, and with no other", async () => {
    await using door = await Door.open(["ci-1", "ci-2", "other-1"])
    const compare = (id: string, other: string) => door.ask("session.compare", { id, other }, ci)
    await expect(compare("ci-1", "other-1")).rejects.toThrow("there is no session")
    await expect(compare("other-1", "ci-1")).rejects.toThrow("there is no session")
    // Past the door: whoever answers here has no such call.
    await expect(compare("ci-1", "ci-2")).rejects.toThrow("not in this test")
  })

  test("ends nothing that the others run in", async () => {
    await using door = await Door.open(["ci-1", "other-1"])
    await expect(door.ask("runner.shutdown", {}, ci)).rejects.toMatchObject({ code: "forbidden" })
  })

  test("hears only of those", async () => {
    await using door = await Door.open()
    const statement = door.statement({ call: "session.follow", limits: ci })
    const heard: number[] = []
    for await (const { seq } of door.client.feed("session.follow", {}, { statement })) heard.push(seq)
    expect(heard).toEqual([1, 4])
  })

  test("follows what goes on in those, and in no other", async () => {
    await using door = await Door.open(["ci-1", "other-1"])
    const follow = (session: string) => {
      const statement = door.statement({ call: "process.subscribeStdout", session, limits: ci })
      return door.client.feed("process.subscribeStdout", { session, pid: 1 }, { statement }).next()
    }
    await expect(follow("ci-1")).resolves.toMatchObject({ value: { seq: 1 } })
    await expect(follow("other-1")).rejects.toMatchObject({ code: "not_found" })
  })

  test("makes no more than it may, also many at once; the user's own quota counts all", async () => {
    await using door = await Door.open(["ci-1", "other-1"])
    const few = { ...ci, prefixSessionsMax: 3 }
    const tries = Array.from({ length: 5 }, (_, n) => door.ask("session.create", { name: `ci-n${n}` }, few))
    const ends = await Promise.allSettled(tries)
    expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(2)
    await expect(door.ask("session.create", {}, { sessionsMax: 4 })).rejects.toMatchObject({ code: "limit" })
    expect(await door.ask("session.create", { name: "x" }, { sessionsMax: 5 })).toMatchObject({ name: "x" })
    await expect(door.ask("session.fork", { id: "x", count: 2 }, { sessionsMax: 6 })).rejects.toMatchObject({
      code: "limit",
    })
  })
})
