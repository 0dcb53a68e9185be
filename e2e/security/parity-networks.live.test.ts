import { execFile } from "node:child_process"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { programs } from "@warren/drivers/oci/testing/subject.ts"
import { afterAll, beforeAll, expect, it } from "vitest"
import { record } from "./results.ts"

const run = promisify(execFile)
const tsx = resolve(import.meta.dirname, "../../node_modules/.bin/tsx")

let root = ""
beforeAll(() => void (root = realpathSync(mkdtempSync(join(tmpdir(), "wn-")))))
afterAll(() => rmSync(root, { recursive: true, force: true }))

it.skipIf(process.getuid?.() !== 0)(
  "a sandbox is as shut with every kind of network",
  { timeout: 180_000 },
  async () => {
    const life = join(import.meta.dirname, "networks/probe-life.ts")
    const { stdout } = await run("unshare", ["--net", tsx, life, root, JSON.stringify(programs)])
    const { tried, seen } = JSON.parse(stdout) as { tried: number; seen: Record<string, string[]> }
    const open = (mode: string): string[] =>
      ["user", "root"].flatMap((who) => (seen[`${mode}, ${who}`] ?? ["nothing"]).map((one) => `${who}: ${one}`))
    for (const mode of ["none", "proxy"]) expect(open(mode)).toEqual([])
    // What it is for, and nothing else.
    const device = "reach.network_device is OPEN (), not SHUT"
    expect(open("bridge")).toEqual([`user: ${device}`, `root: ${device}`])
    // Everything of the machine's network: programs on loopback and abstract sockets. A port of its own below 1024 is the machine's there.
    const shared = ["ns.net", "canary.abstract_socket", "canary.loopback", "canary.any_address", "canary.host_address"]
    const each = [...shared, "reach.network_device"].map((id) => `${id} is OPEN`)
    const found = (who: string): string[] => (seen[`host, ${who}`] ?? []).map((one) => one.replace(/ \(.*$/, ""))
    expect(found("user")).toEqual(each)
    expect(found("root")).toEqual([...each, "reach.low_port is SHUT"])
    record("probes-networks", { cases: tried, ways: Object.keys(seen).length })
  },
)
