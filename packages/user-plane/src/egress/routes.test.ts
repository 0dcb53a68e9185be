import { Fault } from "@warren/base/fault.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { expect, test } from "vitest"
import { targetOf } from "./host.ts"
import { defaultEgressLimits } from "./limits.ts"
import { Policy } from "./policy.ts"
import { Routes } from "./routes.ts"
import { Loopback } from "./testing/egress-system.ts"

const never = new AbortController().signal
const listed = (port: number): Policy =>
  new Policy({ mode: "list", allow: [`a.test:${port}`], allowPrivate: [`127.0.0.1:${port}`] })
const routesTo = (policy: Policy): Routes =>
  new Routes(policy, () => Promise.resolve(["127.0.0.1"]), defaultEgressLimits)

test("what a new policy forbids while it is dialled is not handed out", async () => {
  await using server = await Loopback.tcp((socket) => void socket.resume().once("end", () => socket.end()))
  const routes = routesTo(listed(server.port))
  // An address needs no looking up: it is checked and dialled at once, and nothing is open yet that could be cut.
  const opening = routes.open(targetOf(`127.0.0.1:${server.port}`), never)
  expect(routes.replace(new Policy({ mode: "none" }))).toBe(0)
  await expect(opening).rejects.toMatchObject({ reason: "policy-changed" })
  await eventually(() => routes.counters().open === 0 && server.open === 0)
})

test("a new policy cuts what leads to an address that it no longer lists, though the name still is", async () => {
  await using server = await Loopback.tcp((socket) => void socket.resume().once("end", () => socket.end()))
  const routes = routesTo(listed(server.port))
  const socket = await routes.open(targetOf(`a.test:${server.port}`), never)
  expect(routes.replace(new Policy({ mode: "list", allow: [`a.test:${server.port}`] }))).toBe(1)
  expect(socket.errored).toMatchObject({ reason: "policy-changed" })
  await eventually(() => server.open === 0)
})

test("who leaves while it is dialled is told its own reason", async () => {
  const target = targetOf("127.0.0.1:1")
  const reason = new Fault("cancelled", "changed my mind")
  const routes = routesTo(new Policy({ mode: "list", allowPrivate: ["127.0.0.1:1"] }))
  await expect(routes.open(target, AbortSignal.abort(reason))).rejects.toBe(reason)
  expect(routes.counters()).toMatchObject({ opened: 0, open: 0 })
})
