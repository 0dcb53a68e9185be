import { eventually } from "@warren/base/testing/eventually.ts"
import { Fault, type FaultData } from "@warren/base/fault.ts"
import type { Context } from "@warren/protocol/contract.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"
import { expect, test } from "vitest"
import { gateLimits } from "./gate.ts"
import { TestControl } from "./testing/test-control.ts"
import { Visit, type Principal } from "./visit.ts"

const { signal } = new AbortController()

/** Handlers behind a gate that answer when they are told to. */
class Held {
  readonly #plane: UserPlane
  readonly #waiting: (() => void)[] = []
  came = 0

  constructor({ control }: TestControl) {
    const hold = (): Promise<object> => {
      this.came++
      return new Promise((answer) => this.#waiting.push(() => answer({})))
    }
    const follow = async function* (this: Held): AsyncGenerator<unknown> {
      yield await hold()
    }
    const handlers = { "session.get": hold, "session.follow": follow } as unknown as UserPlane
    this.#plane = control.gate.guard(userPlane, handlers)
  }

  async get(principal: Principal): Promise<FaultData | undefined> {
    const context = visiting(principal)
    return this.#plane["session.get"]({ id: "x" }, context).then(
      () => undefined,
      (thrown: unknown) => ({ ...Fault.from(thrown).toData(), hint: visitHeaders(context) }),
    )
  }

  feed(principal: Principal): AsyncIterator<unknown> {
    return this.#plane["session.follow"]({ after: 0 }, visiting(principal))[Symbol.asyncIterator]()
  }

  answerAll(): void {
    for (const answer of this.#waiting.splice(0)) answer()
  }
}

function visiting(principal: Principal): Context {
  const caller = new Visit("10.0.0.1")
  caller.principal = principal
  return { caller, signal }
}

const visitHeaders = ({ caller }: Context): string => String((caller as Visit).headers)

async function principalOf({ control }: TestControl, headers: Record<string, string>): Promise<Principal> {
  const request = new Request("http://localhost:7777/v1/account", { headers })
  const found = await control.identity.of(request)
  if (!found) throw new Error("nobody")
  return found
}

test("so many requests of a user are answered at once, the next is told to come again, and others are served", async () => {
  await using system = await TestControl.open()
  const olga = await principalOf(system, { authorization: `Bearer ${await system.ownerToken()}` })
  const bob = await principalOf(system, {
    cookie: (await system.person("bob")).cookie,
    origin: "http://localhost:7777",
  })
  const held = new Held(system)
  const first = Array.from({ length: gateLimits.answersMax }, () => held.get(olga))
  expect(held.came).toBe(gateLimits.answersMax)
  const message = expect.stringContaining(`${gateLimits.answersMax} requests`) as string
  expect(await held.get(olga)).toEqual({ code: "limit", message, hint: "retry-after,1" })
  const other = held.get(bob)
  expect(held.came).toBe(gateLimits.answersMax + 1)
  held.answerAll()
  expect((await Promise.all([...first, other])).filter(Boolean)).toEqual([])
  const next = held.get(olga)
  held.answerAll()
  expect(await next).toBeUndefined()
})

test("so many feeds of a user are open at once; one that ends makes room", async () => {
  await using system = await TestControl.open()
  const olga = await principalOf(system, { authorization: `Bearer ${await system.ownerToken()}` })
  const held = new Held(system)
  const feeds = Array.from({ length: gateLimits.opensMax }, () => held.feed(olga))
  const firsts = feeds.map((feed) => feed.next())
  expect(() => held.feed(olga)).toThrow(`${gateLimits.opensMax} feeds and streams`)
  await eventually(() => held.came === feeds.length)
  held.answerAll()
  await Promise.all(firsts)
  await feeds[0]?.return?.()
  const next = held.feed(olga)
  expect(() => held.feed(olga)).toThrow(`${gateLimits.opensMax} feeds and streams`)
  for (const feed of [next, ...feeds]) await feed.return?.()
})
