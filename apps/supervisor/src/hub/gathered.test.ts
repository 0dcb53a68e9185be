import { canceled, type AgentEvent } from "@warren/agents/adapter.ts"
import { ManualClock, systemClock } from "@warren/base/clock.ts"
import fc from "fast-check"
import { expect, test } from "vitest"
import { gathered, gatherMs } from "./gathered.ts"

const text = (said: string, part?: "reasoning"): AgentEvent => ({ type: "text", text: said, ...(part ? { part } : {}) })
const title: AgentEvent = { type: "title", title: "t" }

/** Events as they are pushed, by hand. */
class Source {
  readonly #ready: AgentEvent[] = []
  #wake = (): void => undefined
  isLeft = false

  push(...events: AgentEvent[]): void {
    this.#ready.push(...events)
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<AgentEvent, void, void> {
    try {
      for (;;) {
        const event = this.#ready.shift()
        if (event) yield event
        if (event?.type === "end") return
        if (!event) await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    } finally {
      this.isLeft = true
    }
  }
}

async function settled(): Promise<void> {
  for (let turns = 0; turns < 3; turns++) await new Promise(setImmediate)
}

test("the first piece is passed on at once, those that follow together", async () => {
  const [clock, source, seen] = [new ManualClock(), new Source(), [] as AgentEvent[]]
  const reading = (async () => {
    for await (const event of gathered(source, clock)) seen.push(event)
  })()
  source.push(text("a"))
  await settled()
  expect(seen).toEqual([text("a")])
  source.push(text("b"), text("c"))
  await settled()
  expect(seen).toEqual([text("a")])
  await clock.advance(gatherMs)
  await settled()
  expect(seen).toEqual([text("a"), text("bc")])
  source.push(text("d"), text("think", "reasoning"), title, text("e"), canceled)
  await reading
  expect(seen.slice(2)).toEqual([text("d"), text("think", "reasoning"), title, text("e"), canceled])
  expect(source.isLeft).toBe(true)
})

test("whatever comes in whatever order: the same text, in the same places", async () => {
  const one = fc.oneof(
    fc.string({ minLength: 1, maxLength: 5_000 }).map((said) => text(said)),
    fc.string({ minLength: 1 }).map((said) => text(said, "reasoning")),
    fc.constant(title),
    fc.constant("pause" as const),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(one, { maxLength: 40 }), async (steps) => {
      const source = async function* (): AsyncGenerator<AgentEvent, void, void> {
        for (const step of steps)
          if (step === "pause") await systemClock.sleep(1)
          else yield step
        yield canceled
      }
      const seen: AgentEvent[] = []
      for await (const event of gathered(source(), systemClock)) seen.push(event)
      expect(runs(seen)).toEqual(runs([...steps.filter((step) => step !== "pause"), canceled]))
    }),
    { numRuns: 100 },
  )
})

test("a failing agent fails as it did", async () => {
  const source = async function* (): AsyncGenerator<AgentEvent, void, void> {
    yield text("a")
    yield text("b")
    await Promise.reject(new Error("dead"))
  }
  const seen: AgentEvent[] = []
  const reading = (async () => {
    for await (const event of gathered(source(), systemClock)) seen.push(event)
  })()
  await expect(reading).rejects.toThrow("dead")
  expect(runs(seen)).toEqual([text("ab")])
})

/** Text that follows text of its kind, joined. */
function runs(events: readonly AgentEvent[]): AgentEvent[] {
  const joined: AgentEvent[] = []
  for (const event of events) {
    const last = joined.at(-1)
    if (event.type === "text" && last?.type === "text" && event.part === last.part)
      joined[joined.length - 1] = { ...last, text: last.text + event.text }
    else joined.push(event)
  }
  return joined
}
