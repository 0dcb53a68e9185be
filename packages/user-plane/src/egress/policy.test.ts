import { describe, expect, test } from "vitest"
import { Denied } from "./denied.ts"
import { targetOf } from "./host.ts"
import { EgressPolicy, Policy } from "./policy.ts"

const verdict = (policy: Policy, text: string): string => {
  try {
    policy.checkTarget(targetOf(text))
    return "allowed"
  } catch (thrown) {
    return thrown instanceof Denied ? thrown.reason : String(thrown)
  }
}

describe("an egress policy", () => {
  const policy = new Policy({
    mode: "list",
    allow: [
      "example.com",
      "*.Example.ORG.",
      "api.example.net:8443,9443",
      "8.8.8.8",
      "[2606:4700::1111]:443",
      "tcp://git.example:22",
    ],
  })

  test.each([
    ["example.com:443", "allowed"],
    ["EXAMPLE.com.:80", "allowed"],
    ["example.com:22", "port"],
    ["www.example.com:443", "not-listed"],
    ["evilexample.com:443", "not-listed"],
    ["example.com.evil.net:443", "not-listed"],
    ["a.example.org:443", "allowed"],
    ["a.b.example.org:443", "allowed"],
    ["example.org:443", "not-listed"],
    ["evil-example.org:443", "not-listed"],
    ["api.example.net:8443", "allowed"],
    ["api.example.net:9443", "allowed"],
    ["api.example.net:443", "port"],
    ["8.8.8.8:443", "allowed"],
    ["8.8.4.4:443", "plain-address"],
    ["[2606:4700::1111]:443", "allowed"],
    ["[2606:4700:0::1111]:80", "port"],
    ["git.example:22", "allowed"],
    ["git.example:443", "port"],
  ])("%s: %s", (text, expected) => expect(verdict(policy, text)).toBe(expected))

  test.each([[{}], [{ mode: "list" as const }], [{ mode: "list" as const, allow: [] }], [{ allow: ["example.com"] }]])(
    "%j allows nothing",
    (input) => expect(verdict(new Policy(input), "example.com:443")).not.toBe("allowed"),
  )

  test.each([
    undefined,
    null,
    "",
    [],
    { mode: "all" },
    { mode: "list", allow: null },
    { mode: "list", allow: "example.com" },
  ])("%j is no policy", (input) => expect(EgressPolicy.safeParse(input).success).toBe(false))

  test.each([
    "*",
    "*.com",
    "*.1.2.3.4",
    "exa*mple.com",
    "http://example.com",
    "example.com/path",
    "tcp://example.com",
    "example.com:0",
    "example.com:70000",
    "example.com:443,",
    "",
    "127.1",
    "user@example.com",
    "a b",
  ])("%j is no rule", (rule) => expect(() => new Policy({ mode: "list", allow: [rule] })).toThrow(/is not a rule/))

  test("only what is listed as raw, at that port, is not looked into", () => {
    const raw = ["git.example:22", "git.example:443", "example.com:22", "example.com:443"].filter((text) =>
      policy.isRaw(targetOf(text)),
    )
    expect(raw).toEqual(["git.example:22"])
  })

  test("all-public means names, on the web's ports", () => {
    const open = new Policy({ mode: "all-public", allow: ["example.com:22"] })
    expect(verdict(open, "anything.example:443")).toBe("allowed")
    expect(verdict(open, "anything.example:25")).toBe("port")
    expect(verdict(open, "example.com:22")).toBe("allowed")
    expect(verdict(open, "8.8.8.8:443")).toBe("plain-address")
  })

  test("a public address of an allowed name is dialled", () => {
    expect(() => policy.checkAddress(targetOf("example.com:443"), "93.184.215.14")).not.toThrow()
  })

  test("a private address is dialled only when it is named with its port, and that is shown", () => {
    const named = new Policy({ mode: "list", allow: ["db.example"], allowPrivate: ["10.1.2.3:443", "[::1]:80"] })
    const target = targetOf("db.example:443")
    expect(() => named.checkAddress(target, "10.1.2.3")).not.toThrow()
    expect(() => named.checkAddress(target, "10.1.2.4")).toThrow(/leads to 10.1.2.4 \(private\)/)
    expect(() => named.checkAddress({ ...target, port: 80 }, "10.1.2.3")).toThrow(Denied)
    expect(() => named.checkAddress({ ...target, port: 80 }, "0:0:0:0:0:0:0:1")).not.toThrow()
    expect(() => named.checkAddress(target, "nonsense")).toThrow(/not an address/)
    expect(verdict(named, "10.1.2.3:443")).toBe("allowed")
    expect(verdict(named, "10.1.2.3:80")).toBe("plain-address")
    expect(named.degraded()).toEqual([
      "egress: the private address 10.1.2.3:443 may be reached",
      "egress: the private address [::1]:80 may be reached",
    ])
    expect(() => new Policy({ allowPrivate: ["db.example:443"] })).toThrow(/is not an address/)
  })
})
