import { silentLog } from "@warren/base/log.ts"
import { newId } from "@warren/base/id.ts"
import { contract, type Context, type Entry } from "@warren/protocol/contract.ts"
import type { CallScope } from "@warren/protocol/token-scope.ts"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { z } from "zod"
import { auditLimits } from "./audit/audit-log.ts"
import { Buckets } from "./buckets.ts"
import { Gate } from "./gate.ts"
import { TestControl } from "./testing/test-control.ts"
import { Visit, type Principal } from "./visit.ts"
import { Watch } from "./watch.ts"

const any = { in: z.looseObject({}), since: 1, doc: "" }
const call = <const S extends CallScope>(scope: S, http: Entry["http"] & string) => ({
  ...any,
  scope,
  http,
  out: z.any(),
})
const stream = (http: Entry["http"] & string, body: "bytes" | "result") =>
  ({ ...any, scope: "exec", http, up: z.any(), down: z.any(), body }) as const
const doors = contract({
  read: call("sessions:read", "GET /read"),
  write: call("sessions:write", "POST /write"),
  rule: call("admin", "GET /rule"),
  account: call("account:write", "POST /account"),
  enter: call("open", "POST /enter"),
  feed: { ...any, scope: "exec", http: "GET /feed", each: z.any() },
  watched: stream("GET /watched", "result"),
  bytes: stream("GET /bytes", "bytes"),
  run: stream("POST /run", "result"),
})
type Door = keyof typeof doors

let system: TestControl
let came: string[] = []
/** What the streams and feeds that are open may be told. */
let signals: AbortSignal[] = []
beforeAll(async () => {
  system = await TestControl.open()
})
beforeEach(async () => {
  await system.control.audit.written()
  ;[came, signals] = [[], []]
})
afterAll(() => system[Symbol.asyncDispose]())

function gateWith(watch: Watch = system.control.watch) {
  const gate = new Gate({ audit: system.control.audit, buckets: new Buckets(system.clock), watch })
  const answer =
    (name: string) =>
    (_: unknown, { signal }: Context) => {
      came.push(name)
      signals.push(signal)
      return name === "feed" ? nothing() : Promise.resolve({})
    }
  const handlers = Object.fromEntries(Object.keys(doors).map((name) => [name, answer(name)]))
  return gate.guard(doors, handlers as never) as unknown as Record<Door, (input: unknown, context: Context) => unknown>
}

async function* nothing(): AsyncGenerator<never> {}

const someone = (scopes: readonly string[], more: Partial<Principal> = {}): Principal => ({
  user: { id: newId("usr"), name: "alice", role: "admin", isDisabled: false, createdAt: 1 },
  ...{ via: "token", viaId: newId("tok"), hash: "", scopes: new Set(scopes) as Principal["scopes"], limits: undefined },
  ...{ requestsPerMinute: { user: 60_000, token: undefined }, ...more },
})

function visiting(principal: Principal | undefined, address = "10.0.0.1"): { caller: Visit; signal: AbortSignal } {
  const caller = new Visit(address)
  caller.principal = principal
  return { caller, signal: new AbortController().signal }
}

/** The code it is refused with, or `ok`. */
async function asks(gate: ReturnType<typeof gateWith>, name: Door, context: Context) {
  try {
    await gate[name]({}, context)
    return "ok"
  } catch (thrown) {
    return (thrown as { code?: string }).code ?? String(thrown)
  }
}

/** What was written down of a request. */
async function noted({ caller }: { caller: Visit }) {
  await system.control.audit.written()
  const all = await system.control.audit.read({ after: 0 }, 100_000)
  return all.filter(({ request }) => request === caller.requestId)
}

describe("who asks", () => {
  test.each(Object.keys(doors) as Door[])("%s is answered to who may, and to nobody else", async (name) => {
    const gate = gateWith()
    const { scope } = doors[name]
    const others = ["sessions:read", "sessions:write", "exec", "admin", "account:write"].filter((one) => one !== scope)
    const expected = scope === "open" ? ["ok", "ok", "ok"] : ["ok", "forbidden", "unauthenticated"]
    const visits = [someone([scope]), someone(others), undefined].map((who) => visiting(who))
    expect(await Promise.all(visits.map((visit) => asks(gate, name, visit)))).toEqual(expected)
    expect(came.filter((one) => one === name)).toHaveLength(expected.filter((one) => one === "ok").length)
  })

  test("with a token for some sessions may give them nothing else of its owner's", async () => {
    const doorsOf = contract({ "session.create": call("sessions:write", "POST /x") })
    const gate = new Gate({ ...system.control, buckets: new Buckets(system.clock) })
    const { "session.create": create } = gate.guard(doorsOf, { "session.create": async () => ({}) })
    const limits = { namePrefix: "ci-" }
    const bound = visiting(someone(["sessions:write"], { limits }))
    await expect(create({ workspace: "notes" }, bound)).rejects.toMatchObject({ code: "forbidden" })
    await create({ workspace: "notes" }, visiting(someone(["sessions:write"])))
    await create({ workspace: "notes" }, visiting(someone(["sessions:write", "workspaces:write"], { limits })))
  })

  test.each([
    ["user", { user: 60, token: undefined }],
    ["token", { user: 60_000, token: 60 }],
  ])("too often, by %s, is told when to come back, and others are served", async (_, requestsPerMinute) => {
    const gate = gateWith()
    const who = someone(["sessions:read"], { requestsPerMinute })
    for (let n = 0; n < 10; n++) expect(await asks(gate, "read", visiting(who))).toBe("ok")
    const late = visiting(who)
    expect(await asks(gate, "read", late)).toBe("limit")
    expect(late.caller.headers).toEqual([["retry-after", "1"]])
    expect(await asks(gate, "read", visiting(someone(["sessions:read"])))).toBe("ok")
    expect(came).toHaveLength(11)
  })
})

describe("what is written down", () => {
  test("is everything but reading one's own", async () => {
    const gate = gateWith()
    const all = someone(["sessions:read", "sessions:write", "exec", "admin", "account:write"])
    for (const name of Object.keys(doors) as Door[]) {
      const visit = visiting(all)
      await asks(gate, name, visit)
      const isNoted = !doors[name].http.startsWith("GET ") || doors[name].scope === "admin"
      expect([name, (await noted(visit)).map(({ action, result }) => [action, result])]).toEqual([
        ...[name, isNoted ? [[name, "ok"]] : []],
      ])
    }
  })

  test("names what it was about by its id, and by nothing that a user has chosen", async () => {
    const gate = gateWith()
    const id = newId("ses")
    const subject = async (input: unknown): Promise<unknown> => {
      const visit = visiting(someone(["sessions:write"]))
      await gate.write(input, visit)
      return (await noted(visit))[0]?.subject
    }
    expect([await subject({ id }), await subject({ session: id, id: "x" })]).toEqual([id, id])
    for (const input of [{ id: "my secret plan" }, { session: [id] }, { id: 7 }, {}, null, undefined, "x", 7])
      expect(await subject(input)).toBe("")
  })

  test("is every refusal of somebody known, and of somebody unknown as many as are worth it", async () => {
    const gate = gateWith()
    const refused = async (who: Principal | undefined, address: string): Promise<number> => {
      const visits = Array.from({ length: 30 }, () => visiting(who, address))
      for (const visit of visits) await asks(gate, "write", visit)
      return (await Promise.all(visits.map(noted))).filter((rows) => rows.length === 1).length
    }
    expect(await refused(someone([]), "10.0.0.2")).toBe(30)
    expect(await refused(undefined, "10.0.0.3")).toBe(10)
  })

  test("is on disk before anybody hears of a change of who may, and of the rest a moment later", async () => {
    const gate = gateWith()
    const all = someone(["sessions:write", "admin", "account:write"])
    const waiting = async (name: Door): Promise<number> => {
      await system.control.audit.written()
      await asks(gate, name, visiting(all))
      return system.control.audit.waiting
    }
    expect([await waiting("rule"), await waiting("account"), await waiting("enter")]).toEqual([0, 0, 0])
    expect(await waiting("write")).toBe(1)
  })

  test("has to have room before anything is done that is worth it", async () => {
    const { audit } = system.control
    const gate = gateWith()
    const who = someone(["sessions:read", "sessions:write"])
    const facts = { user: "", via: "", action: "x", subject: "", address: "", request: "", result: "ok" }
    for (let n = 0; n < auditLimits.waitingMax; n++) audit.add(facts)
    const answers = [asks(gate, "write", visiting(who)), asks(gate, "read", visiting(who))]
    expect(await Promise.all(answers)).toEqual(["unavailable", "ok"])
    expect(came).toEqual(["read"])
  })
})

test("who only watches is sent away when Warren stops, and who is served is not", async () => {
  using watch = new Watch(async () => true, silentLog)
  const gate = gateWith(watch)
  const names = ["feed", "watched", "bytes", "run"] as const
  for (const name of names) expect(await asks(gate, name, visiting(someone(["exec"])))).toBe("ok")
  watch.endFeeds()
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, false, false])
})
