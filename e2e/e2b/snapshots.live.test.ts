import { afterAll, afterEach, describe, expect, test } from "vitest"
import { E2bSystem, sdks, type Sdk } from "./system.ts"

const system = await E2bSystem.start()
afterAll(() => system[Symbol.asyncDispose]())
const { options } = system
type Sandbox = InstanceType<Sdk["Sandbox"]>

describe.each(sdks)("snapshots by $version", ({ sdk }) => {
  const made: Sandbox[] = []
  const create = async (template = "base", more: object = {}): Promise<Sandbox> => {
    const sandbox = await sdk.Sandbox.create(template, { ...options, ...more })
    made.push(sandbox)
    return sandbox
  }
  afterEach(async () => {
    for (const sandbox of made.splice(0)) await sandbox.kill()
  })

  test("freeze files; others start from them; they outlive their sandbox", async () => {
    const sandbox = await create()
    await sandbox.files.write("note", "frozen")
    const snapshot = await sandbox.createSnapshot()
    expect(snapshot.snapshotId).toMatch(/^snp_/)
    await sandbox.files.write("note", "later")
    const other = await create(snapshot.snapshotId)
    expect(await other.files.read("note")).toBe("frozen")
    await other.files.write("note", "of the other")
    expect(await sandbox.files.read("note")).toBe("later")
    await sandbox.kill()
    expect(await (await create(snapshot.snapshotId)).files.read("note")).toBe("frozen")
    expect(await sdk.Sandbox.deleteSnapshot(snapshot.snapshotId, options)).toBe(true)
    expect(await sdk.Sandbox.deleteSnapshot(snapshot.snapshotId, options)).toBe(false)
    await expect(create(snapshot.snapshotId)).rejects.toThrow("404")
  })

  test("are listed, of all and of one", async () => {
    const [one, other] = [await create(), await create()]
    const ids = [(await one.createSnapshot()).snapshotId, (await one.createSnapshot()).snapshotId]
    const foreign = (await other.createSnapshot()).snapshotId
    const list = async (more: object): Promise<string[]> => {
      const pages = sdk.Sandbox.listSnapshots({ ...options, ...more })
      const found: string[] = []
      while (pages.hasNext) found.push(...(await pages.nextItems()).map(({ snapshotId }) => snapshotId))
      return found
    }
    expect(await list({ sandboxId: one.sandboxId })).toEqual(ids.toReversed())
    expect(await list({ limit: 1 })).toEqual([foreign, ...ids.toReversed()])
    for (const id of [...ids, foreign]) expect(await sdk.Sandbox.deleteSnapshot(id, options)).toBe(true)
  })

  test("have names", async () => {
    const sandbox = await create()
    await sandbox.files.write("note", "named")
    const snapshot = await sandbox.createSnapshot({ name: "my-state" })
    expect(snapshot.names).toEqual(["my-state"])
    expect(await (await create("my-state")).files.read("note")).toBe("named")
    expect(await sdk.Sandbox.deleteSnapshot("my-state", options)).toBe(true)
  })

  test("forks have what their parent had", async () => {
    const parent = await create("base", { metadata: { family: "yes" } })
    await parent.files.write("note", "of the parent")
    const forks = await parent.fork({ count: 2, timeoutMs: 120_000 })
    expect(forks.length).toBe(2)
    for (const fork of forks) {
      if (fork instanceof Error) throw fork
      made.push(fork)
      expect(await fork.files.read("note")).toBe("of the parent")
      const info = await fork.getInfo()
      expect(info.metadata).toEqual({ family: "yes" })
      expect(info.endAt.getTime() - Date.now()).toBeLessThan(121_000)
    }
    await expect(sdk.Sandbox.fork("0".repeat(40), options)).rejects.toThrow(sdk.SandboxNotFoundError)
  })

  test("without memory a sandbox begins anew with its files", async () => {
    const sandbox = await create()
    const running = await sandbox.commands.run("sleep 1000", { background: true })
    await running.disconnect()
    await sandbox.files.write("note", "kept")
    expect(await sandbox.pause({ keepMemory: false })).toBe(true)
    expect((await sandbox.getInfo()).state).toBe("paused")
    await sandbox.connect()
    expect(await sandbox.files.read("note")).toBe("kept")
    expect((await sandbox.commands.list()).some(({ pid }) => pid === running.pid)).toBe(false)
  })

  test("what a sandbox uses", async () => {
    const sandbox = await create()
    await sandbox.commands.run(
      "head -c 3000000 /dev/zero > big; sync; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
    )
    const [metric] = await sandbox.getMetrics()
    expect(metric).toMatchObject({ cpuCount: 2, memTotal: 512 * 1024 * 1024 })
    expect(metric?.memUsed).toBeGreaterThan(0)
    expect(metric?.cpuUsedPct).toBeGreaterThan(0)
    expect(metric?.diskUsed).toBeGreaterThan(2_000_000)
    expect(metric?.diskTotal).toBeGreaterThan(metric?.diskUsed ?? 0)
    expect(Math.abs((metric?.timestamp.getTime() ?? 0) - Date.now())).toBeLessThan(60_000)
    expect((await sandbox.getMetrics()).length).toBe(2)
    expect(await sandbox.getMetrics({ start: new Date(Date.now() + 3600_000) })).toEqual([])
  })

  test("what a sandbox may reach, and how that is changed", async () => {
    const sandbox = await create("base", { network: { allowOut: ["allowed.example"], denyOut: ["0.0.0.0/0"] } })
    const why = async (host: string): Promise<string> =>
      (await sandbox.commands.run(`curl -s -m 5 -o /dev/null -w '%{http_code}' http://${host}/ || true`)).stdout.trim()
    expect(await why("denied.example")).toBe("403")
    expect((await sandbox.getInfo()).network?.allowOut).toEqual(["allowed.example"])
    const shut = await create("base", { allowInternetAccess: false })
    expect((await shut.getInfo()).allowInternetAccess).toBe(false)
    await expect(create("base", { network: { denyOut: ["8.8.8.8"] } })).rejects.toThrow("denyOut")
    await sandbox.updateNetwork({ allowOut: ["other.example"], denyOut: ["0.0.0.0/0"] })
    expect((await sandbox.getInfo()).network?.allowOut).toEqual(["other.example"])
    expect(await why("allowed.example")).toBe("403")
    expect(await why("other.example")).not.toBe("403")
  })
})
