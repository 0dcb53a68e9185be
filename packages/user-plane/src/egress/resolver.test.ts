import { Resolver as Dns } from "node:dns/promises"
import { eventually } from "@warren/base/testing/eventually.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { resolveBy } from "./resolver.ts"
import { NameServer } from "./testing/name-server.ts"

const six = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
const never = new AbortController().signal
let server: NameServer

beforeAll(async () => {
  server = await NameServer.start({
    "both.test": { a: [192, 0, 2, 1], aaaa: six },
    "four.test": { a: [192, 0, 2, 2] },
    "six.test": { aaaa: six },
    "empty.test": {},
    "failed.test": { a: "failed", aaaa: "failed" },
    "half.test": { a: "failed", aaaa: six },
    "other.test": { aaaa: "failed" },
    "silent.test": { a: "silent", aaaa: "silent" },
  })
})
afterAll(() => server[Symbol.asyncDispose]())

function lookUp(name: string, signal = never): Promise<readonly string[]> {
  const dns = new Dns({ timeout: 10_000, tries: 1 })
  dns.setServers([server.address])
  return resolveBy(dns, name, signal)
}

describe("where a name leads", () => {
  test("is asked once, in both kinds of addresses", async () => {
    expect(await lookUp("both.test")).toEqual(["192.0.2.1", "2001:db8::1"])
    expect(server.asked.get("both.test")).toBe(2)
    expect(await lookUp("four.test")).toEqual(["192.0.2.2"])
    expect(await lookUp("six.test")).toEqual(["2001:db8::1"])
  })

  test("is nowhere, when there is no such name or nothing is known of it", async () => {
    expect(await lookUp("absent.test")).toEqual([])
    expect(await lookUp("empty.test")).toEqual([])
  })

  test("is not nowhere because nobody could say", async () => {
    await expect(lookUp("failed.test")).rejects.toMatchObject({ code: "ESERVFAIL" })
    await expect(lookUp("other.test")).rejects.toMatchObject({ code: "ESERVFAIL" })
    expect(await lookUp("half.test")).toEqual(["2001:db8::1"])
  })

  test("is waited for no longer than somebody wants to know", async () => {
    const leaving = new AbortController()
    const looking = lookUp("silent.test", leaving.signal)
    await eventually(() => server.asked.get("silent.test") === 2)
    leaving.abort()
    await expect(looking).rejects.toMatchObject({ code: "ECANCELLED" })
  })
})
