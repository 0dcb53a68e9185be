import { describe, expect, test } from "vitest"
import { branches, type Snapshot } from "./snapshot-tree.ts"

const snapshot = (id: string, second: number, parent?: string): Snapshot => ({
  ...{ id, session: "ses_1", image: "host", isAutomatic: false },
  createdAt: `2026-01-01T00:00:0${second}.000Z`,
  ...(parent === undefined ? {} : { parent }),
})

describe("snapshots as a tree", () => {
  test("each is below the one it came from, the oldest first", () => {
    const all = [snapshot("c", 3, "a"), snapshot("b", 2), snapshot("d", 4, "c"), snapshot("a", 1)]
    expect(branches(all).map(({ snapshot: { id }, depth }) => [id, depth])).toEqual([
      ["a", 0],
      ["c", 1],
      ["d", 2],
      ["b", 0],
    ])
  })

  test("one whose origin is gone begins a tree of its own", () => {
    expect(branches([snapshot("b", 2, "gone")])).toMatchObject([{ depth: 0, snapshot: { id: "b" } }])
  })
})
