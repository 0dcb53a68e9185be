import { describe, expect, it } from "vitest"
import { lineOf, Slots } from "./line.ts"

describe("the cable of a sandbox", () => {
  it("has a name that the kernel takes, and addresses that no other has", () => {
    expect(lineOf("0a1b2c", 0)).toEqual({ device: "wrn0a1b2c0000", gateway: "198.18.0.1", address: "198.18.0.2" })
    const last = { device: "wrn0a1b2c7fff", gateway: "198.19.255.253", address: "198.19.255.254" }
    expect(lineOf("0a1b2c", 32_767)).toEqual(last)
    expect(last.device.length).toBeLessThanOrEqual(15)
  })

  it("is never given twice, and refused when half of them are taken", () => {
    const slots = new Slots()
    const taken = Array.from({ length: 16_384 }, () => slots.take())
    expect(new Set(taken).size).toBe(taken.length)
    expect(() => slots.take()).toThrow(/too many/)
    for (const slot of taken) slots.give(slot)
    expect(slots.isEmpty).toBe(true)
  })
})
