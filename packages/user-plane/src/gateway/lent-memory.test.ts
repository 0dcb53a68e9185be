import fc from "fast-check"
import { expect, test } from "vitest"
import { LentMemory } from "./lent-memory.ts"

test("memory is given back once, and never while a piece of it is unwritten or may still come", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ pieces: fc.integer({ min: 1, max: 4 }), writes: fc.integer({ min: 0, max: 8 }) })),
      (reads) => {
        const free: ArrayBufferLike[] = []
        const lent = new LentMemory({ recycle: (memory: ArrayBufferLike) => free.push(memory) })
        const waiting: { memory: ArrayBufferLike; written: () => void }[] = []
        let newest: ArrayBufferLike | undefined
        const check = (): void => {
          expect(new Set(free).size).toBe(free.length)
          for (const memory of free)
            expect(waiting.some((one) => one.memory === memory) || memory === newest).toBe(false)
        }
        for (const { pieces, writes } of reads) {
          const read = Buffer.allocUnsafeSlow(8)
          for (let i = 0; i < pieces; i++) {
            newest = read.buffer
            waiting.push({ memory: read.buffer, written: lent.take(read.subarray(i, i + 1)) })
            check()
          }
          // Writes are taken in order.
          for (const { written } of waiting.splice(0, writes)) written()
          check()
        }
        for (const { written } of waiting.splice(0)) written()
        check()
        expect(free).toHaveLength(Math.max(0, reads.length - 1))
      },
    ),
  )
})
