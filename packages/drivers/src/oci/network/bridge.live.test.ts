import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { programs } from "../testing/subject.ts"

const run = promisify(execFile)
const tsx = resolve(import.meta.dirname, "../../../../../node_modules/.bin/tsx")

/** On a machine of its own, as far as the network goes: nothing here touches that of the real one. */
describe("sandboxes with an address of their own", () => {
  let root = ""
  let seen: Record<string, unknown> = {}
  afterAll(() => rmSync(root, { recursive: true, force: true }))

  beforeAll(async () => {
    root = realpathSync(mkdtempSync(join(tmpdir(), "wb-")))
    const life = join(import.meta.dirname, "testing/bridge-life.ts")
    const { stdout } = await run("unshare", ["--net", tsx, life, root, JSON.stringify(programs)])
    seen = JSON.parse(stdout) as Record<string, unknown>
    console.log("bridge: start", seen["startMs"])
  }, 120_000)

  it("reach what is public, as the host", () => expect(seen["public"]).toBe("you are 10.9.9.1"))

  it("reach neither the host, private networks, metadata services nor each other, and are told at once", () => {
    expect(new Set(Object.values(seen["refused"] as object))).toEqual(new Set(["refused"]))
    const notPublic = Object.entries(seen["not public"] as object)
    expect(notPublic.filter(([, answer]) => answer !== "refused")).toEqual([])
    expect(seen["reachable from the host itself"]).toBe("yes")
  })

  it("cannot be reached, and make no router of the host", () => {
    expect(Object.values(seen["from outside"] as object)).toEqual(["timeout", "timeout"])
  })

  it("may ask the resolver they were given, and no other", () => expect(seen["names"]).toEqual(["answer to a", ""]))

  it("cannot send in the name of others", () => expect(seen["heard"]).toEqual(["honest from 10.9.9.1"]))

  it("have no version 6, and none passes for who gives themselves one", () => {
    expect([seen["version 6"], seen["answer to version 6"]]).toEqual(["", ""])
  })

  it("send nothing but TCP and UDP, and at most so many connections, each for itself", () => {
    expect(seen["answer to a ping"]).toBe("type 3")
    expect(seen["too many connections"]).toEqual(["refused", "you are 10.9.9.1"])
  })

  it("are measured and counted", () => {
    expect(seen["posture"]).toEqual({ mode: "bridge", routes: ["eth0"] })
    expect(seen["counted"]).toBe(true)
  })

  it("keep their address over a restart and a new runner, which mends the rules and removes what is left over", () => {
    expect(seen["address after a restart"]).toBe(true)
    expect(seen["adopted"]).toEqual(["you are 10.9.9.1", "refused", "answer to c", 2])
    expect(seen["one left"]).toEqual([1, true, "you are 10.9.9.1"])
  })

  it("leave the host as it was", () => {
    expect(seen["before"]).toEqual([[], "", "0"])
    expect(seen["after"]).toEqual(seen["before"])
    expect(seen["at the end"]).toEqual(seen["before"])
  })
})

describe("sandboxes with an address, where firewalls pass nothing on", () => {
  let root = ""
  beforeAll(() => void (root = realpathSync(mkdtempSync(join(tmpdir(), "wf-")))))
  afterAll(() => rmSync(root, { recursive: true, force: true }))

  it("reach what is public and not forbidden by name, and leave the firewalls as they were", async ({ skip }) => {
    const missing = ["iptables-nft", "iptables-legacy"].find((name) => !existsSync(join("/usr/sbin", name)))
    if (missing !== undefined) return skip(`${missing} is not installed`)
    const life = join(import.meta.dirname, "testing/firewall-life.ts")
    const { stdout } = await run("unshare", ["--net", tsx, life, root, JSON.stringify(programs)])
    const seen = JSON.parse(stdout) as Record<string, unknown>
    expect(seen["reached"]).toEqual(["you are 10.9.9.1", "nothing"])
    expect([seen["adopted"], seen["once"]]).toEqual(["you are 10.9.9.1", true])
    expect(seen["after"]).toBe(seen["before"])
  }, 60_000)
})
