import { once } from "node:events"
import type { Readable } from "node:stream"
import { newId } from "@warren/base/id.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { base, bearer, FrontWorld, socketTo, type Ask } from "./testing/front-world.ts"

let world: FrontWorld
beforeAll(async () => {
  world = await FrontWorld.open()
})
afterAll(() => world[Symbol.asyncDispose]())

/** However it ends. */
const ended = (one: Readable): Promise<void> => new Promise((done) => one.resume().once("close", done))

describe("what somebody is let in with", () => {
  test("has to count still, wherever in a request it is, and whatever else is there", async () => {
    const via = await world.viaOfBob()
    const token = world.tokenFor(via.id)
    const app = { authorization: "Bearer of-the-app" }
    const ways: [string, Ask][] = [
      [`${base}/`, bearer(token)],
      [`${base}/?token=${token}`, {}],
      [`${base}/?token=${token}`, { headers: app }],
      [`${base}/?token=of-the-app&token=${token}`, {}],
      [`${base}/?token=tkt_${"s".repeat(43)}.${via.id}`, { headers: app }],
    ]
    for (const [path, asked] of ways) expect((await world.ask(path, asked)).status).toBe(200)
    await via.revoke()
    for (const [path, asked] of ways) expect([path, (await world.ask(path, asked)).status]).toEqual([path, 401])
    const socket = await world.say(socketTo(`${base}/?token=${token}`, "Authorization: Bearer of-the-app"))
    expect(socket).toMatch(/^HTTP\/1\.1 401 /)
  })

  test("has to be of whose session it is", async () => {
    const olga = await world.system.ask("/v1/tokens", {
      token: await world.system.ownerToken(),
      body: { scopes: ["ports"] },
    })
    expect((await world.ask(`${base}/`, bearer(world.tokenFor(olga.body.about.id)))).status).toBe(401)
  })

  test("says whose runner it is for, where nobody has said whose the session is", async () => {
    const about = newId("ses")
    expect((await world.ask(`/s/${about}/t/3000/`, bearer(world.tokenFor(undefined, "bob", about)))).status).toBe(200)
    expect((await world.ask(`/s/${about}/t/3000/`, bearer(world.tokenFor(undefined, "nobody", about)))).status).toBe(
      401,
    )
    const { status, body } = await world.ask("/api/tunnels", bearer(world.tokenFor()))
    expect([status, JSON.parse(body).url]).toEqual([200, "/api/tunnels"])
    expect((await world.ask("/api/tunnels")).status).toBe(401)
  })

  test("goes on without what does not count any more", async () => {
    const [one, other] = [await world.viaOfBob(), await world.viaOfBob()]
    await other.revoke()
    const cookie = `a=1; ${[one, other].map(({ id }) => `gateway_session=${"s".repeat(43)}.${id}`).join("; ")}`
    const { body } = await world.ask(`${base}/`, { headers: { cookie } })
    expect(JSON.parse(body).headers.cookie).toBe(`a=1; gateway_session=${"s".repeat(43)}.${one.id}`)
  })

  test("cuts what is open when it ends, and nothing else", async () => {
    const { watch } = world.system.control
    const [one, other] = [await world.viaOfBob(), await world.viaOfBob()]
    const [mine, theirs, plain] = await Promise.all([
      ...[
        world.begin(`${base}/hang`, bearer(world.tokenFor(one.id))),
        world.begin(`${base}/hang`, bearer(world.tokenFor(other.id))),
      ],
      world.begin(`${base}/hang`),
    ])
    const socket = world.connect()
    socket.write(socketTo(`${base}/socket`, `Cookie: gateway_session=${"s".repeat(43)}.${one.id}`))
    const [said] = (await once(socket.setEncoding("utf8"), "data")) as [string]
    expect(said).toMatch(/^HTTP\/1\.1 101 /)
    await watch.look()
    await one.revoke()
    const closed = [mine, socket].map((open) => open && ended(open))
    await watch.look()
    await Promise.all(closed)
    expect([theirs?.destroyed, plain?.destroyed]).toEqual([false, false])
    theirs?.destroy()
    plain?.destroy()
  })
})

describe("whose session it is", () => {
  test("does not matter any more when they may not: what is open is cut, and nothing is opened", async () => {
    const { store, watch } = world.system.control
    const open = await world.begin(`${base}/hang`)
    await store.users.change(world.bob.id, { role: "member", isDisabled: true })
    const closed = ended(open)
    await watch.look()
    await closed
    expect((await world.ask(`${base}/`)).status).toBe(401)
    await store.users.change(world.bob.id, { role: "member", isDisabled: false })
    expect((await world.ask(`${base}/`)).status).toBe(200)
  })

  test("nor when they are gone", async () => {
    const { store, watch, ownership } = world.system.control
    const eve = { id: newId("usr"), name: "eve", role: "member", isDisabled: false, createdAt: 1 } as const
    await store.users.add(eve)
    const hers = newId("ses")
    ownership.learn("session.get", eve.id, { id: hers })
    const open = await world.begin(`/s/${hers}/t/3000/hang`)
    await store.users.delete(eve.id)
    const closed = ended(open)
    await watch.look()
    await closed
    expect((await world.ask(`/s/${hers}/t/3000/`)).status).toBe(401)
  })
})
