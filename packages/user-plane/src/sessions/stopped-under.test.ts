import { Fault } from "@warren/base/fault.ts"
import { contract, type Context, type Numbered } from "@warren/protocol/contract.ts"
import type { Conversation } from "@warren/protocol/conversation.ts"
import { describe, expect, test } from "vitest"
import { z } from "zod"
import { stoppedUnder } from "./stopped-under.ts"

const session = z.string().optional()
const table = contract({
  "thing.get": { since: 1, doc: "One answer.", in: z.object({ session }), out: z.string() },
  "thing.talk": { since: 1, doc: "Both ways.", in: z.object({ session }), up: z.string(), down: z.string() },
  "thing.feed": { since: 1, doc: "Many answers.", in: z.object({ session }), each: z.string() },
})
const context: Context = { signal: new AbortController().signal, caller: { name: "me" } }

/** Handlers of a session that may be ended once they are in it; each of them then fails as told. */
class House {
  failure: Error = new Fault("unavailable", "nobody listens")
  isStopped = false
  readonly said: string[] = []
  readonly handlers = stoppedUnder(
    table,
    {
      "thing.get": async () => this.#broken(),
      "thing.talk": async (): Promise<Conversation<string, string>> => ({
        next: async () => this.#broken(),
        send: (message) => void this.said.push(message),
        write: async () => void this.#broken(),
        [Symbol.asyncDispose]: async () => void this.said.push("over"),
      }),
      "thing.feed": (): AsyncIterable<Numbered<string>> => this.#feed(),
    },
    () => {
      const before = this.isStopped
      return () => this.isStopped !== before
    },
  )

  async *#feed(): AsyncIterable<Numbered<string>> {
    yield { seq: 1, item: "first" }
    this.#broken()
  }

  #broken(): string {
    this.isStopped = true
    throw this.failure
  }
}

async function all<T>(items: AsyncIterable<T>, into: T[]): Promise<void> {
  for await (const item of items) into.push(item)
}

const stopped = { code: "conflict", message: "the session was stopped meanwhile", subject: "session:s" }

describe("whoever is in a session that somebody else stops", () => {
  test("is told so, in a call, in a conversation and in a feed", async () => {
    await expect(new House().handlers["thing.get"]({ session: "s" }, context)).rejects.toMatchObject(stopped)

    const house = new House()
    const talk = await house.handlers["thing.talk"]({ session: "s" }, context)
    talk.send("hello")
    await expect(talk.next()).rejects.toMatchObject(stopped)
    await expect(talk.write(Buffer.of(1))).rejects.toMatchObject(stopped)
    await talk[Symbol.asyncDispose]()
    expect(house.said).toEqual(["hello", "over"])

    const seen: Numbered<string>[] = []
    const feed = new House().handlers["thing.feed"]({ session: "s" }, context)
    await expect(all(feed, seen)).rejects.toMatchObject(stopped)
    expect(seen).toEqual([{ seq: 1, item: "first" }])
  })

  test("is told what else was wrong as it is, and what is broken where nobody stopped anything", async () => {
    const other = new House()
    other.failure = new Fault("not_found", "no such file")
    await expect(other.handlers["thing.get"]({ session: "s" }, context)).rejects.toBe(other.failure)

    const before = new House()
    before.isStopped = true
    await expect(before.handlers["thing.get"]({ session: "s" }, context)).rejects.toBe(before.failure)

    const without = new House()
    await expect(without.handlers["thing.get"]({}, context)).rejects.toBe(without.failure)
  })
})
