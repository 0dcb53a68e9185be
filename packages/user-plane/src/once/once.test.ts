import { ManualClock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { contract, type Context } from "@warren/protocol/contract.ts"
import { describe, expect, test } from "vitest"
import { z } from "zod"
import { madeLimits, madeMigrations, MadeStore } from "./made.ts"
import { onceEach } from "./once.ts"

const table = contract({
  "thing.make": {
    since: 1,
    makes: true,
    doc: "Makes a thing.",
    in: z.object({ name: z.string() }),
    out: z.object({ number: z.int() }),
  },
  "thing.count": { since: 1, doc: "How many.", in: z.object({}), out: z.object({ number: z.int() }) },
})

class Workshop implements AsyncDisposable {
  readonly clock = new ManualClock()
  readonly #folder: TempFolder
  readonly #database: Database
  readonly handlers
  made = 0
  /** What is being made waits for this. */
  gate = Promise.resolve()

  private constructor(folder: TempFolder) {
    this.#folder = folder
    this.#database = new Database(folder.at("db"), { migrations: madeMigrations, now: () => this.clock.now() })
    const store = new MadeStore(this.#database, this.clock)
    const make = async (_: unknown, { signal }: Context): Promise<{ number: number }> => {
      await this.gate
      signal.throwIfAborted()
      return { number: ++this.made }
    }
    const count = async (): Promise<{ number: number }> => ({ number: this.made })
    this.handlers = onceEach(table, { "thing.make": make, "thing.count": count }, store)
  }

  static async open(): Promise<Workshop> {
    return new Workshop(await TempFolder.make())
  }

  make(name: string, key: string | undefined, as = "alice", signal = new AbortController().signal) {
    return this.handlers["thing.make"]({ name }, { signal, caller: { name: as }, key })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#database.close()
    await this.#folder[Symbol.asyncDispose]()
  }
}

describe("what makes something", () => {
  test("makes it once for each key of each caller", async () => {
    await using shop = await Workshop.open()
    expect(await shop.make("a", "k")).toEqual({ number: 1 })
    expect(await shop.make("a", "k")).toEqual({ number: 1 })
    expect(await shop.make("a", "other")).toEqual({ number: 2 })
    expect(await shop.make("a", "k", "bob")).toEqual({ number: 3 })
    expect(await shop.make("a", undefined)).toEqual({ number: 4 })
    expect(await shop.make("a", undefined)).toEqual({ number: 5 })
  })

  test("asked many times at once, it is made once", async () => {
    await using shop = await Workshop.open()
    const answers = await Promise.all(Array.from({ length: 20 }, () => shop.make("a", "k")))
    expect(new Set(answers.map(({ number }) => number))).toEqual(new Set([1]))
    expect(shop.made).toBe(1)
  })

  test("a key is for one request: with another it is a conflict, also while it runs", async () => {
    await using shop = await Workshop.open()
    const first = shop.make("a", "k")
    await expect(shop.make("b", "k")).rejects.toMatchObject({ code: "conflict" })
    await first
    await expect(shop.make("b", "k")).rejects.toMatchObject({ code: "conflict" })
    expect(shop.made).toBe(1)
  })

  test("what failed, or was cancelled, is done by whoever asks next", async () => {
    await using shop = await Workshop.open()
    let open = (): void => undefined
    shop.gate = new Promise((resolve) => (open = resolve))
    const gone = new AbortController()
    const first = shop.make("a", "k", "alice", gone.signal)
    const second = shop.make("a", "k")
    gone.abort(new Fault("cancelled", "the caller went away"))
    open()
    await expect(first).rejects.toMatchObject({ code: "cancelled" })
    expect(await second).toEqual({ number: 1 })
  })

  test("a day later a key is new", async () => {
    await using shop = await Workshop.open()
    await shop.make("a", "k")
    await shop.clock.advance(madeLimits.keptMs - 1)
    expect(await shop.make("a", "k")).toEqual({ number: 1 })
    await shop.clock.advance(1)
    expect(await shop.make("b", "k")).toEqual({ number: 2 })
  })
})
