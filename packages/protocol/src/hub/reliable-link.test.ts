import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { z } from "zod"
import { hubLimits } from "./frames.ts"
import { ProcessMemory } from "./link-memory.ts"
import { ReliableLink, type Wire } from "./reliable-link.ts"

const Word = z.discriminatedUnion("type", [z.object({ type: z.literal("word"), n: z.int() })])
type Word = z.output<typeof Word>
interface Letter {
  readonly wire: Wire
  readonly text: string
}

/** One end with everything it was told, and the letters on their way to it. */
class End {
  readonly memory = new ProcessMemory<Word>()
  readonly taken: number[] = []
  readonly link: ReliableLink<Word, Word>
  arriving: Letter[] = []
  wire: Wire | undefined
  failsNext = false
  closed: [number, string][] = []
  signs: string[] = []

  constructor(later: (work: () => void) => void) {
    this.link = new ReliableLink<Word, Word>({
      link: "lnk",
      memory: this.memory,
      vocabulary: Word,
      later,
      heard: ({ type }) => void this.signs.push(type),
      deliver: ({ n }, note) => {
        if (this.failsNext) {
          this.failsNext = false
          throw new Error("the disk is full")
        }
        this.taken.push(n)
        note()
      },
    })
  }
}

/** Two ends and a network that keeps order within a connection, and nothing else. */
class Pair {
  readonly #later: (() => void)[] = []
  readonly left = new End((work) => void this.#later.push(work))
  readonly right = new End((work) => void this.#later.push(work))

  connect(): void {
    for (const end of [this.left, this.right]) if (end.wire) end.link.detach(end.wire)
    const toRight = { left: undefined as Wire | undefined, right: undefined as Wire | undefined }
    toRight.left = this.#wire(this.left, this.right, () => toRight.right)
    toRight.right = this.#wire(this.right, this.left, () => toRight.left)
    this.left.wire = toRight.left
    this.right.wire = toRight.right
    this.left.link.attach(toRight.left)
    this.right.link.attach(toRight.right)
  }

  /** What was under way is lost, some of it: a connection ends for each side at a moment of its own. */
  cut(keptLeft: number, keptRight: number): void {
    this.left.arriving = this.left.arriving.slice(0, keptLeft)
    this.right.arriving = this.right.arriving.slice(0, keptRight)
  }

  step(end: End): void {
    const letter = end.arriving.shift()
    if (letter) end.link.receive(letter.wire, letter.text)
  }

  /** The same letter twice, as a network that retries would. */
  repeat(end: End): void {
    const [letter] = end.arriving
    if (letter) end.arriving.unshift(letter)
  }

  idle(): void {
    for (const work of this.#later.splice(0)) work()
  }

  settle(): void {
    this.connect()
    for (let quiet = 0; quiet < 3;) {
      const isBusy = this.left.arriving.length + this.right.arriving.length + this.#later.length > 0
      this.step(this.left)
      this.step(this.right)
      this.idle()
      if (!this.left.link.isTogether || !this.right.link.isTogether) if (!isBusy) this.connect()
      quiet = isBusy ? 0 : quiet + 1
    }
  }

  #wire(from: End, to: End, other: () => Wire | undefined): Wire {
    const wire: Wire = {
      send: (text) => {
        const target = other()
        if (target && from.wire === wire && to.wire === target) to.arriving.push({ wire: target, text })
      },
      close: (code, reason) => void from.closed.push([code, reason]),
    }
    return wire
  }
}

describe("a reliable link", () => {
  const side = fc.constantFrom("left" as const, "right" as const)
  const action = fc.oneof(
    { arbitrary: fc.record({ do: fc.constant("say" as const), side }), weight: 6 },
    { arbitrary: fc.record({ do: fc.constant("step" as const), side }), weight: 8 },
    { arbitrary: fc.record({ do: fc.constant("repeat" as const), side }), weight: 1 },
    { arbitrary: fc.record({ do: fc.constant("fail" as const), side }), weight: 1 },
    { arbitrary: fc.constant({ do: "idle" as const }), weight: 3 },
    { arbitrary: fc.record({ do: fc.constant("cut" as const), left: fc.nat(5), right: fc.nat(5) }), weight: 1 },
    { arbitrary: fc.constant({ do: "connect" as const }), weight: 1 },
  )

  test("delivers everything once and in order, whatever the network does", () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 200 }), (actions) => {
        const pair = new Pair()
        const said = { left: 0, right: 0 }
        pair.connect()
        for (const one of actions) {
          if (one.do === "say") pair[one.side].link.send({ type: "word", n: ++said[one.side] })
          if (one.do === "step") pair.step(pair[one.side])
          if (one.do === "repeat") pair.repeat(pair[one.side])
          if (one.do === "fail") pair[one.side].failsNext = true
          if (one.do === "idle") pair.idle()
          if (one.do === "cut") pair.cut(one.left, one.right)
          if (one.do === "connect") pair.connect()
        }
        pair.left.failsNext = pair.right.failsNext = false
        pair.settle()
        const all = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)
        expect(pair.right.taken).toEqual(all(said.left))
        expect(pair.left.taken).toEqual(all(said.right))
        expect([pair.left.memory.after(0, 1), pair.right.memory.after(0, 1)]).toEqual([[], []])
      }),
      { numRuns: 1_000 },
    )
  })

  test("has no more under way than it may, and goes on when some has arrived", () => {
    const pair = new Pair()
    pair.connect()
    pair.step(pair.right)
    pair.step(pair.left)
    for (let n = 1; n <= hubLimits.flightMessages + 50; n++) pair.left.link.send({ type: "word", n })
    expect(pair.right.arriving).toHaveLength(hubLimits.flightMessages)
    pair.settle()
    expect(pair.right.taken).toHaveLength(hubLimits.flightMessages + 50)
  })

  test("keeps no more than it may: whoever has more to say waits", () => {
    const memory = new ProcessMemory<Word>()
    for (let n = 0; n < hubLimits.keptMessages; n++) memory.push({ type: "word", n })
    expect(memory.isFull).toBe(true)
    expect(() => memory.push({ type: "word", n: 0 })).toThrow(expect.objectContaining({ code: "limit" }))
    memory.forget(1)
    expect(memory.isFull).toBe(false)
    expect(memory.after(0, 1)).toMatchObject([{ seq: 2 }])
  })

  const together = (): Pair => {
    const pair = new Pair()
    pair.connect()
    pair.step(pair.right)
    pair.step(pair.left)
    return pair
  }

  test.each([
    ["no JSON", "{", 1002],
    ["a list", "[]", 1002],
    ["a gap", JSON.stringify({ type: "word", n: 1, seq: 2, ack: 0 }), 1002],
    ["an acknowledgement of what was never sent", JSON.stringify({ type: "ack", ack: 9 }), 1002],
    ["a second greeting", JSON.stringify({ type: "resume", link: "lnk", ack: 0 }), 1002],
    ["another link", JSON.stringify({ type: "resume", link: "other", ack: 0 }), 1002],
  ])("ends the connection, not itself, at %s", (_, text, code) => {
    const pair = together()
    const { right } = pair
    if (right.wire) right.link.receive(right.wire, text)
    expect(right.closed[0]?.[0]).toBe(code)
    expect(right.link.isTogether).toBe(false)
    pair.left.link.send({ type: "word", n: 1 })
    pair.settle()
    expect(right.taken).toEqual([1])
  })

  test("wants the greeting first", () => {
    const pair = new Pair()
    pair.connect()
    const { right } = pair
    if (right.wire) right.link.receive(right.wire, JSON.stringify({ type: "word", n: 1, seq: 1, ack: 0 }))
    expect([right.closed[0]?.[0], right.taken]).toEqual([1002, []])
  })

  test("answers what means nothing, once, and goes on", () => {
    const pair = together()
    const { right, left } = pair
    const say = (message: object): void => right.wire && right.link.receive(right.wire, JSON.stringify(message))
    say({ type: "word", n: "one", seq: 1, ack: 0 })
    say({ type: "unheard-of", seq: 2, ack: 0 })
    say({ type: "word", n: 3, seq: 3, ack: 0 })
    const answers = left.arriving.map(({ text }) => JSON.parse(text) as { type: string; of?: number; code?: string })
    expect(answers.filter(({ type }) => type === "refused")).toMatchObject([
      { of: 1, code: "invalid" },
      { of: 2, code: "unsupported" },
    ])
    expect([right.taken, right.memory.received]).toEqual([[3], 3])
  })

  test("answers a ping", () => {
    const pair = together()
    pair.left.link.ping()
    pair.step(pair.right)
    pair.step(pair.left)
    expect([pair.right.signs.at(-1), pair.left.signs.at(-1)]).toEqual(["ping", "pong"])
  })
})
