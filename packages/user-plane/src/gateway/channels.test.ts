import { expect, test } from "vitest"
import { Channels } from "./channels.ts"
import { gatewayLimits } from "./limits.ts"

const grant = (session: string) => ({ user: "alice", session, target: "3000" })

test("so much and no more is open at once in one session", () => {
  const channels = new Channels()
  const open = Array.from({ length: gatewayLimits.exchangesPerSessionMax }, () => channels.open(grant("a"), undefined))
  expect(() => channels.open(grant("a"), undefined)).toThrow("too much")
  channels.open(grant("b"), undefined)
  // Twice is once.
  open[0]?.[Symbol.dispose]()
  open[0]?.[Symbol.dispose]()
  channels.open(grant("a"), undefined)
  expect(() => channels.open(grant("a"), undefined)).toThrow("too much")
})

test("what goes through a tunnel is cut with it, and nothing else", () => {
  const channels = new Channels()
  const [through, beside, over] = [
    channels.open(grant("a"), "tun_1"),
    channels.open(grant("a"), undefined),
    channels.open(grant("a"), "tun_1"),
  ]
  over[Symbol.dispose]()
  channels.cut(({ tunnel }) => tunnel === "tun_1", "gone")
  expect([through, beside, over].map(({ signal }) => signal.aborted)).toEqual([true, false, false])
})
