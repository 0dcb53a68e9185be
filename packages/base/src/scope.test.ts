import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Fault } from "./fault.ts"
import { Scope } from "./scope.ts"

describe("Scope", () => {
  test("closes in reverse order, one after the other", async () => {
    const seen: string[] = []
    const scope = new Scope()
    for (const name of ["a", "b", "c"]) {
      scope.defer(async () => {
        seen.push(`${name} begins`)
        await new Promise(setImmediate)
        seen.push(`${name} ends`)
      })
    }
    await scope.close()
    expect(seen).toEqual(["c begins", "c ends", "b begins", "b ends", "a begins", "a ends"])
  })

  test("aborts its signal before it takes anything away", async () => {
    const scope = new Scope()
    let wasAborted = false
    scope.defer(() => void (wasAborted = scope.signal.aborted))
    await scope.close()
    expect(wasAborted).toBe(true)
    expect(scope.signal.reason).toMatchObject({ code: "cancelled" })
  })

  test("uses what can be disposed, in either way, and gives it back", async () => {
    const seen: string[] = []
    const plain = { [Symbol.dispose]: () => void seen.push("plain") }
    const slow = { [Symbol.asyncDispose]: async () => void seen.push("slow") }
    {
      await using scope = new Scope()
      expect(scope.use(plain)).toBe(plain)
      expect(scope.use(slow)).toBe(slow)
    }
    expect(seen).toEqual(["slow", "plain"])
  })

  test("closes everything whichever releases fail, and tells every failure", async () => {
    const release = fc.constantFrom("fine", "throws", "rejects")
    await fc.assert(
      fc.asyncProperty(fc.array(release, { maxLength: 6 }), async (kinds) => {
        const scope = new Scope()
        const closed: number[] = []
        kinds.forEach((kind, index) => {
          scope.defer(() => {
            closed.push(index)
            if (kind === "throws") throw new Error(String(index))
            return kind === "rejects" ? Promise.reject(new Error(String(index))) : undefined
          })
        })
        const thrown: unknown = await scope.close().then(
          () => undefined,
          (failure: unknown) => failure,
        )
        expect(closed).toEqual(kinds.map((_, index) => index).toReversed())
        const failed = closed.filter((index) => kinds[index] !== "fine").map(String)
        const told = thrown instanceof AggregateError ? thrown.errors : thrown === undefined ? [] : [thrown]
        expect(told.map((error: Error) => error.message)).toEqual(failed)
        expect(thrown instanceof AggregateError).toBe(failed.length > 1)
      }),
    )
  })

  test("closed twice, at once or later, releases once and both wait for the same end", async () => {
    let releases = 0
    const { promise, resolve } = gate()
    const scope = new Scope()
    scope.defer(async () => {
      releases++
      await promise
    })
    const first = scope.close()
    const second = scope.close()
    let isDone = false
    void second.then(() => (isDone = true))
    await new Promise(setImmediate)
    expect(isDone).toBe(false)
    resolve()
    await Promise.all([first, second, scope.close()])
    expect(releases).toBe(1)
  })

  test("closed again by whoever its signal tells, releases once", async () => {
    const scope = new Scope()
    const seen: string[] = []
    scope.signal.addEventListener("abort", () => void scope.close().then(() => seen.push("closed")))
    scope.defer(() => void seen.push("released"))
    await scope.close()
    expect(seen.toSorted()).toEqual(["closed", "released"])
  })

  test("refuses to own more once it is closing, also while it closes", async () => {
    const scope = new Scope()
    let refusal: unknown
    scope.defer(() => {
      try {
        scope.defer(() => undefined)
      } catch (thrown) {
        refusal = thrown
      }
    })
    await scope.close()
    expect(refusal).toMatchObject({ code: "conflict" })
    expect(() => scope.use({ [Symbol.dispose]: () => undefined })).toThrow(Fault)
  })
})

function gate(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}
