import { expect, test } from "vitest"
import { Gate } from "./gate.ts"

const never = new AbortController().signal

test("who closes a gate waits for those inside, and is alone then", async () => {
  const gate = new Gate()
  const first = await gate.enter(never)
  const second = await gate.enter(never)
  const happened: string[] = []
  const closing = gate.close(never).then((open) => {
    happened.push("closed")
    return open
  })
  const late = gate.enter(never).then((pass) => {
    happened.push("entered")
    pass[Symbol.dispose]()
  })
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  await new Promise(setImmediate)
  expect(happened).toEqual([])
  second[Symbol.dispose]()
  const open = await closing
  await new Promise(setImmediate)
  expect(happened).toEqual(["closed"])
  open[Symbol.dispose]()
  await late
  expect(happened).toEqual(["closed", "entered"])
})

test("who does not want to wait any more leaves it open for the others", async () => {
  const gate = new Gate()
  using _ = await gate.enter(never)
  const stop = new AbortController()
  const closing = gate.close(stop.signal)
  stop.abort(new Error("enough"))
  await expect(closing).rejects.toThrow("enough")
  using another = await gate.enter(never)
  expect(another).toBeDefined()
  await expect(gate.enter(AbortSignal.abort(new Error("before")))).rejects.toThrow("before")
})
