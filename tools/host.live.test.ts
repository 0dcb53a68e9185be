import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Scope } from "@warren/base/scope.ts"
import { describe, expect, it } from "vitest"
import { changes, hostState, isDamage, type Places } from "./host.ts"

const mark = `warren-plant-${process.pid}`
const run = (...argv: [string, ...string[]]): void => void execFileSync(argv[0], argv.slice(1), { stdio: "ignore" })
const has = (program: string): boolean => {
  try {
    run("sh", "-c", `command -v ${program}`)
    return true
  } catch {
    return false
  }
}

/** Settings and nodes are planted in folders that stand for the real ones: other tests are held to those. */
function places(scope: Scope): Places {
  const folder = mkdtempSync(join(tmpdir(), "warren-host-"))
  scope.defer(() => rmSync(folder, { recursive: true }))
  const below = (name: string): string => join(folder, name)
  for (const name of ["dev", "sys/kernel", "etc"]) mkdirSync(below(name), { recursive: true })
  run("mknod", join(below("dev"), "null"), "c", "1", "3")
  writeFileSync(join(below("sys"), "kernel/core_pattern"), "core\n")
  writeFileSync(join(below("sys"), "kernel/ns_last_pid"), "1\n")
  writeFileSync(join(below("etc"), "passwd"), "root:x:0:0\n")
  return { devices: below("dev"), sysctls: below("sys"), accounts: below("etc") }
}

type Plant = (scope: Scope, at: Places) => void | Promise<void>

const plants: readonly [part: string, needs: string, plant: Plant][] = [
  ["devices", "mknod", (_, { devices }) => chmodSync(join(devices, "null"), 0o600)],
  ["sysctls", "sh", (_, { sysctls }) => writeFileSync(join(sysctls, "kernel/core_pattern"), "|/tmp/evil\n")],
  ["accounts", "sh", (_, { accounts }) => writeFileSync(join(accounts, "passwd"), "root:x:0:0\nevil:x:0:0\n")],
  [
    "mounts",
    "mount",
    (scope, { devices }) => {
      run("mount", "-t", "tmpfs", "none", devices)
      scope.defer(() => run("umount", devices))
    },
  ],
  [
    "cgroups",
    "sh",
    (scope) => {
      mkdirSync(join("/sys/fs/cgroup/pids", mark))
      scope.defer(() => rmdirSync(join("/sys/fs/cgroup/pids", mark)))
    },
  ],
  [
    "namespaces",
    "ip",
    (scope) => {
      run("ip", "netns", "add", mark)
      scope.defer(() => run("ip", "netns", "delete", mark))
    },
  ],
  [
    "links",
    "ip",
    (scope) => {
      run("ip", "link", "add", "wplant0", "type", "veth", "peer", "name", "wplant1")
      scope.defer(() => run("ip", "link", "delete", "wplant0"))
    },
  ],
  [
    "rules",
    "nft",
    (scope) => {
      run("nft", "add", "table", "ip", "warren_plant")
      scope.defer(() => run("nft", "delete", "table", "ip", "warren_plant"))
    },
  ],
  [
    "loops",
    "losetup",
    (scope, { accounts }) => {
      const file = join(accounts, "disk")
      writeFileSync(file, Buffer.alloc(1024 * 1024))
      const device = execFileSync("losetup", ["--find", "--show", file]).toString().trim()
      scope.defer(() => run("losetup", "--detach", device))
    },
  ],
  [
    "listeners",
    "sh",
    async (scope) => {
      const server = createServer().listen(0, "127.0.0.1")
      await once(server, "listening")
      scope.defer(() => void server.close())
    },
  ],
  [
    "processes",
    "sh",
    async (scope) => {
      const child = spawn("sh", ["-c", "echo; read line", "/x/warren-launch"], { stdio: ["pipe", "pipe", "ignore"] })
      await once(child.stdout, "data")
      scope.defer(async () => {
        const gone = once(child, "close")
        child.kill("SIGKILL")
        await gone
      })
    },
  ],
  [
    "queues",
    "ipcmk",
    (scope) => {
      const id = /\d+/.exec(execFileSync("ipcmk", ["-Q"]).toString())?.[0] ?? ""
      scope.defer(() => run("ipcrm", "-q", id))
    },
  ],
]

describe.skipIf(process.getuid?.() !== 0)("what tests leave on the machine", () => {
  it.each(plants)("is found: %s", async (part, needs, plant) => {
    expect(has(needs), `${needs} is not installed`).toBe(true)
    await using scope = new Scope()
    const at = places(scope)
    const before = hostState(at)
    await plant(scope, at)
    const found = changes(before, hostState(at)).filter((change) => change.startsWith(`${part}: +`))
    expect(found.length).toBeGreaterThan(0)
    expect(found.every(isDamage)).toBe(["devices", "sysctls", "accounts"].includes(part))
  })

  it("is not what changes by itself", async () => {
    await using scope = new Scope()
    const at = places(scope)
    const before = hostState(at)
    writeFileSync(join(at.sysctls, "kernel/ns_last_pid"), "2\n")
    writeFileSync(join(at.sysctls, "kernel/brought_by_a_module"), "1\n")
    expect(changes(before, hostState(at)).filter(isDamage)).toEqual([])
  })
})
