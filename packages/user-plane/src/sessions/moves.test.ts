import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { SessionState } from "@warren/protocol/user-plane/session.ts"
import { canMove, moved, moves, type Move, type State } from "./moves.ts"

const states = SessionState.options
const names = Object.keys(moves) as Move[]

describe("the moves of a session", () => {
  test("are refused unless the table has them, in words that say why", () => {
    for (const state of states) {
      for (const move of names) {
        const session = { id: "ses_x", state }
        if ((moves[move].from as readonly State[]).includes(state)) expect(moved(session, move)).toBe(moves[move].to)
        else expect(() => moved(session, move)).toThrow(`cannot ${move} a session that is ${state}`)
      }
    }
  })

  test("lead from every state to the end, and from every end back", () => {
    for (const state of states) {
      const reached = reachable(state)
      expect(reached.has("stopped"), state).toBe(true)
      if (state !== "starting") expect(reached.has("running"), state).toBe(true)
    }
  })

  test("never lead to starting: a session begins once", () => {
    expect(names.filter((move) => (moves[move].to as State) === "starting")).toEqual([])
  })

  test("keep any walk within the table", () => {
    const walk = fc.array(fc.constantFrom(...names), { maxLength: 60 })
    fc.assert(
      fc.property(walk, (steps) => {
        let state: State = "starting"
        for (const step of steps) if (canMove(state, step)) state = moved({ id: "x", state }, step)
        expect(states).toContain(state)
      }),
    )
  })
})

function reachable(from: State): Set<State> {
  const reached = new Set<State>([from])
  for (const state of reached) for (const move of names) if (canMove(state, move)) reached.add(moves[move].to)
  return reached
}
