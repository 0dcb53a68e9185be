import { describe, expect, it } from "vitest"
import { checkSpec, defaultLimits, type Limits, type SandboxSpec } from "./sandbox-spec.ts"
import { specOf } from "./spec-of.ts"

const spec = (changes: Partial<SandboxSpec> = {}): SandboxSpec => specOf({ layers: ["/layer"] }, changes)
const refused = (changes: Partial<SandboxSpec>, message: RegExp): void =>
  expect(() => checkSpec(spec(changes))).toThrow(
    expect.objectContaining({ code: "invalid", message: expect.stringMatching(message) as string }),
  )

describe("a spec", () => {
  it("that makes sense is taken, with everything in it", () => {
    checkSpec(
      spec({
        image: { layers: ["/a", "/b"], grafts: [{ from: "/usr", to: "/usr" }] },
        mounts: [{ from: "/", to: "/workspace", isReadOnly: true }],
        network: { mode: "proxy", folder: "/egress" },
        dns: ["1.1.1.1", "2606:4700::1111"],
        hostname: "a",
        limits: { ...defaultLimits, cpus: 0.5, diskBytes: 0 },
      }),
    )
  })

  const limits: [keyof Limits, number][] = [
    ...(["cpus", "memoryBytes", "pidsMax", "openFilesMax", "diskBytes"] as const).flatMap((name) =>
      [-1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60].map((value): [keyof Limits, number] => [name, value]),
    ),
    ["cpus", 0],
    ["pidsMax", 100.5],
    ["memoryBytes", 4096],
  ]
  it.each(limits)("whose limit %s is %d is refused by its name", (name, value) => {
    refused({ limits: { ...defaultLimits, [name]: value } }, new RegExp(`the limit ${name} is`))
  })

  it.each(["", "-a", "a-", "A", "a.b", "a\nb", "a\0", "x".repeat(64)])(
    "whose host name is %j is refused",
    (hostname) => {
      refused({ hostname }, /is not a host name/)
    },
  )

  it("whose image has no layer is refused", () => refused({ image: { layers: [] } }, /at least one layer/))

  it.each(["", "x", "example.org", "1.1.1.1\noptions rotate", "1".repeat(46)])(
    "whose name server is %j is refused",
    (address) => refused({ dns: ["1.1.1.1", address] }, /not an address of a DNS server/),
  )

  describe.each([
    "",
    "a",
    "ab",
    "a/b",
    "/a/../b",
    "/..",
    "/./a",
    "/a//b",
    "/a/",
    "/a\0b",
    "/a\nb",
    "/a,b",
    "/a:b",
    '/a"',
    "/a\\b",
  ])("with the path %j", (path) => {
    const places: [string, Partial<SandboxSpec>][] = [
      ["as a layer", { image: { layers: ["/a", path] } }],
      ["where a graft comes from", { image: { layers: ["/a"], grafts: [{ from: path, to: "/b" }] } }],
      ["where a graft goes", { image: { layers: ["/a"], grafts: [{ from: "/b", to: path }] } }],
      ["where a mount comes from", { mounts: [{ from: path, to: "/b", isReadOnly: true }] }],
      ["where a mount goes", { mounts: [{ from: "/b", to: path, isReadOnly: true }] }],
      ["of the proxy", { network: { mode: "proxy", folder: path } }],
    ]
    it.each(places)("%s is refused", (_, changes) => refused(changes, /is not a plain absolute path/))
  })
})
