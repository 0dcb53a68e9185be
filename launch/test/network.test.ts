import { execFile, spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Launch } from "./client.ts"
import { launcher } from "./world.ts"

const run = promisify(execFile)
const table = "warren_test"
const line = { device: "wrnffffff0001", table, resolvers: ["10.0.0.53", "10.0.0.54"] }
const addresses = { gateway: "198.18.0.5", address: "198.18.0.6" }

/** In a network namespace of its own: the machine's network is not touched. */
describe.skipIf(process.getuid?.() !== 0)("the cable of a sandbox", () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "wnet-")))
  let launch: Launch
  let guest: ChildProcess

  beforeAll(async () => {
    const program = await launcher(folder)
    const inside = join(folder, "launch-elsewhere")
    writeFileSync(inside, `#!/bin/sh\nexec unshare --net ${resolve(program)} "$@"\n`)
    chmodSync(inside, 0o755)
    launch = new Launch(inside, [folder])
    await launch.ask("hello")
    await onHost("nft", `add table inet ${table}; add set inet ${table} resolvers { type ifname . ipv4_addr; }`)
    guest = spawn("unshare", ["--net", "sh", "-c", "echo up; exec sleep 1000"], { stdio: ["ignore", "pipe", "ignore"] })
    if (guest.stdout) await once(guest.stdout, "data")
  })
  afterAll(async () => {
    guest.kill("SIGKILL")
    await launch.end()
    rmSync(folder, { recursive: true, force: true })
  })

  const within = async (pid: number | undefined, ...command: string[]): Promise<string> =>
    (await run("nsenter", [`--net=/proc/${pid}/ns/net`, ...command])).stdout
  const onHost = (...command: string[]): Promise<string> => within(launch.process.pid, ...command)
  const inGuest = (...command: string[]): Promise<string> => within(guest.pid, ...command)
  const ticks = (): string => readFileSync(`/proc/${guest.pid}/stat`, "utf8").split(") ")[1]?.split(" ")[19] ?? ""
  const connect = (changes: object = {}) =>
    launch.ask("network.connect", { pid: guest.pid, startTicks: ticks(), ...line, ...addresses, ...changes })
  const elements = async (): Promise<string> => await onHost("nft", "list", "set", "inet", table, "resolvers")

  it("is there with both addresses and a route, and its resolvers are allowed", async () => {
    expect(await connect()).toMatchObject({ ok: {} })
    expect(await onHost("ip", "-br", "addr", "show", line.device)).toMatch(/UP +198\.18\.0\.5\/30 *$/m)
    expect(await inGuest("ip", "-br", "addr", "show", "eth0")).toMatch(/UP +198\.18\.0\.6\/30 *$/m)
    expect(await inGuest("ip", "route")).toMatch(/^default via 198\.18\.0\.5 dev eth0/)
    for (const resolver of line.resolvers) expect(await elements()).toContain(`"${line.device}" . ${resolver}`)
    expect(await connect()).toMatchObject({ fault: { step: "network", errno: "EEXIST" } })
  })

  it("goes with its resolvers, any number of times, also when the rules are gone", async () => {
    for (let times = 0; times < 2; times++)
      expect(await launch.ask("network.disconnect", line)).toMatchObject({ ok: {} })
    expect(await onHost("ip", "-br", "link")).not.toContain("wrn")
    expect(await elements()).not.toContain("wrn")
    const gone = { ...line, table: "warren_gone" }
    expect(await launch.ask("network.disconnect", gone)).toMatchObject({ ok: {} })
    expect(await connect({ table: "warren_gone" })).toMatchObject({ fault: { step: "network", errno: "ENOENT" } })
    expect(await onHost("ip", "-br", "link")).not.toContain("wrn")
  })

  it("is made for exactly the process that was meant", async () => {
    expect(await connect({ startTicks: "1" })).toMatchObject({ fault: { step: "network", errno: "ESRCH" } })
    expect(await connect({ pid: 2 ** 22 - 1 })).toMatchObject({ fault: { step: "network", errno: "ESRCH" } })
  })

  it.each([
    [{ device: "eth0" }, "device"],
    [{ device: "wrn0123456789abc" }, "device"],
    [{ device: "wrn/../x" }, "device"],
    [{ device: 7 }, "device"],
    [{ table: "filter" }, "table"],
    [{ table: `warren_${"x".repeat(80)}` }, "table"],
    [{ resolvers: ["::1"] }, "resolvers"],
    [{ resolvers: Array.from({ length: 17 }, () => "10.0.0.1") }, "resolvers"],
    [{ gateway: "198.18.0.256" }, "gateway"],
    [{ address: undefined }, "address"],
    [{ pid: 1 }, "pid"],
    [{ startTicks: "x" }, "startTicks"],
  ])("is not made of nonsense: %j", async (changes, field) => {
    const answer = await connect(changes)
    expect(answer.fault).toMatchObject({ step: "request", errno: "EINVAL" })
    expect(answer.fault?.message).toContain(field)
  })

  it("comes and goes a hundred times, and nothing is left", async () => {
    for (let times = 0; times < 100; times++) {
      expect(await connect()).toMatchObject({ ok: {} })
      expect(await launch.ask("network.disconnect", line)).toMatchObject({ ok: {} })
    }
    expect(await onHost("ip", "-br", "link")).not.toContain("wrn")
    expect(await inGuest("ip", "-br", "link")).not.toContain("eth0")
  }, 30_000)
})
