import { describe, expect, test } from "vitest"
import { errnoOf, Fault, faultCodes, isCancellation, messageOf, type FaultCode } from "./fault.ts"

const codes = Object.keys(faultCodes) as FaultCode[]

describe("Fault", () => {
  test.each(codes)("%s survives the way over a wire, without cause and stack", (code) => {
    const fault = new Fault(code, "why", { hint: "do this", subject: "thing:1", cause: new Error("secret") })
    const wire = JSON.stringify(fault.toData())
    expect(wire).not.toContain("secret")
    const back = Fault.fromData(JSON.parse(wire))
    expect([back.code, back.message, back.hint, back.subject, back.cause]).toEqual([
      code,
      "why",
      "do this",
      "thing:1",
      undefined,
    ])
    expect(back.isRetryable).toBe(faultCodes[code].isRetryable)
  })

  test("leaves out what was not said", () => {
    expect(new Fault("limit", "no").toData()).toEqual({ code: "limit", message: "no" })
  })

  test("made from a fault is that fault", () => {
    const fault = new Fault("conflict", "no")
    expect(Fault.from(fault)).toBe(fault)
  })

  test("made from a cancellation or a timeout of the platform keeps its meaning", () => {
    const aborted = new AbortController()
    aborted.abort()
    expect(Fault.from(aborted.signal.reason).code).toBe("cancelled")
    expect(Fault.from(new DOMException("late", "TimeoutError")).code).toBe("timeout")
    expect(isCancellation(aborted.signal.reason)).toBe(true)
    expect(isCancellation(new Fault("cancelled", "x"))).toBe(true)
    expect(isCancellation(new Fault("timeout", "x"))).toBe(false)
  })

  test.each([
    new Error("password=hunter2"),
    "password=hunter2",
    undefined,
    null,
    { code: "invalid", message: "password=hunter2" },
  ])("made from anything else is `internal` and says nothing of it", (thrown) => {
    const fault = Fault.from(thrown)
    expect(fault.code).toBe("internal")
    expect(fault.cause).toBe(thrown === undefined ? undefined : thrown)
    expect(JSON.stringify(fault.toData())).not.toContain("hunter2")
  })

  test.each([
    ["ENOSPC", "limit"],
    ["EDQUOT", "limit"],
    ["EROFS", "unavailable"],
    ["EIO", "unavailable"],
  ])("made from a disk's %s is %s, with what to do, and is no bug", (errno, code) => {
    const thrown = Object.assign(new Error(`${errno}: mkdir '/home/hunter2'`), { code: errno })
    const fault = Fault.from(thrown)
    expect(fault).toMatchObject({ code, hint: expect.stringContaining("disk"), cause: thrown })
    expect(JSON.stringify(fault.toData())).not.toContain("hunter2")
  })

  test("made from a failure whose cleaning up failed too is the first of the two", () => {
    const first = new Fault("limit", "no room")
    const work = (): void => {
      using _ = {
        [Symbol.dispose]: () => {
          throw new Error("and it stays")
        },
      }
      throw first
    }
    const thrown = ((): unknown => {
      try {
        return work()
      } catch (failure) {
        return failure
      }
    })()
    expect(thrown).not.toBe(first)
    expect(Fault.from(thrown)).toBe(first)
  })

  test("every code has an exit code of its own, none of them success", () => {
    const exits = codes.map((code) => faultCodes[code].exitCode)
    expect(new Set(exits).size).toBe(exits.length)
    expect(exits).not.toContain(0)
  })
})

test("messageOf and errnoOf take anything", () => {
  expect([messageOf(new Error("a")), messageOf("b"), messageOf(undefined)]).toEqual(["a", "b", "undefined"])
  const missing = Object.assign(new Error("x"), { code: "ENOENT" })
  expect([errnoOf(missing), errnoOf(new Error("x")), errnoOf({ code: "ENOENT" }), errnoOf(null)]).toEqual([
    "ENOENT",
    "",
    "",
    "",
  ])
})
