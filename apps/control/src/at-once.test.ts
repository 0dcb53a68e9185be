import fc from "fast-check"
import { expect, test } from "vitest"
import { AtOnce } from "./at-once.ts"

test("never more than may, whoever comes and goes, also twice; then nobody is remembered", () => {
  const max = 3
  fc.assert(
    fc.property(fc.array(fc.record({ key: fc.constantFrom("a", "b"), leaves: fc.nat(9) })), (steps) => {
      const atOnce = new AtOnce()
      const inside: { key: string; leave: () => void }[] = []
      for (const { key, leaves } of steps) {
        const gone = inside.splice(0, leaves < 3 ? leaves : 0)
        for (const { leave } of [...gone, ...gone]) leave()
        const count = inside.filter((one) => one.key === key).length
        const leave = atOnce.enter(key, max)
        expect(leave !== undefined).toBe(count < max)
        if (leave) inside.push({ key, leave })
      }
      for (const { leave } of inside) leave()
      expect(atOnce.size).toBe(0)
    }),
  )
})
