import { expect, test } from "vitest"
import { inheritedSockets } from "./inherited-sockets.ts"

const given = { LISTEN_PID: "42", LISTEN_FDS: "3", LISTEN_FDNAMES: "control:gateway:" }

test("sockets are found by their names, and those without one by their number", () => {
  expect([...inheritedSockets(given, 42)]).toEqual([
    ["control", 3],
    ["gateway", 4],
    ["2", 5],
  ])
  expect([...inheritedSockets({ LISTEN_PID: "42", LISTEN_FDS: "1" }, 42)]).toEqual([["0", 3]])
})

test("what is meant for somebody else, or is nonsense, is not there", () => {
  expect(inheritedSockets(given, 43).size).toBe(0)
  expect(inheritedSockets({}, 42).size).toBe(0)
  for (const count of ["", "x", "-1", "1.5", "0", "100000"]) {
    expect(inheritedSockets({ ...given, LISTEN_FDS: count }, 42).size).toBe(0)
  }
})
