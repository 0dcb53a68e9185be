import { afterAll, afterEach, describe, expect, test } from "vitest"
import { E2bSystem, keyOf, sdks, type Sdk } from "./system.ts"

const system = await E2bSystem.start()
afterAll(() => system[Symbol.asyncDispose]())
const { options } = system
type Sandbox = InstanceType<Sdk["Sandbox"]>

describe.each(sdks)("sandboxes by $version", ({ sdk, version }) => {
  const made: Sandbox[] = []
  const create = async (more: object = {}, template = "base"): Promise<Sandbox> => {
    const sandbox = await sdk.Sandbox.create(template, { ...options, ...more })
    made.push(sandbox)
    return sandbox
  }
  afterEach(async () => {
    for (const sandbox of made.splice(0)) await sandbox.kill()
  })

  test("are made, known, and killed once", async () => {
    const before = Date.now()
    const sandbox = await create({ metadata: { purpose: "test" }, timeoutMs: 60_000 })
    expect(sandbox.sandboxId).toMatch(/^[a-z0-9]+$/)
    expect(await sandbox.isRunning()).toBe(true)
    const info = await sandbox.getInfo()
    expect(info).toMatchObject({
      sandboxId: sandbox.sandboxId,
      templateId: "base",
      state: "running",
      metadata: { purpose: "test" },
    })
    expect(info.envdVersion).toBe("0.6.4")
    expect(info.startedAt.getTime()).toBeGreaterThanOrEqual(before - 1_000)
    const life = info.endAt.getTime() - info.startedAt.getTime()
    expect(life).toBe(60_000)
    expect(await sandbox.kill()).toBe(true)
    expect(await sandbox.kill()).toBe(false)
    expect(await sandbox.isRunning()).toBe(false)
    await expect(sdk.Sandbox.getInfo(sandbox.sandboxId, options)).rejects.toThrow(sdk.SandboxNotFoundError)
    await expect(sandbox.commands.run("true")).rejects.toThrow(sdk.SandboxNotFoundError)
  })

  test("live as long as they are told", async () => {
    const sandbox = await create()
    const left = async (): Promise<number> => (await sandbox.getInfo()).endAt.getTime() - Date.now()
    expect(await left()).toBeGreaterThan(250_000)
    await sandbox.setTimeout(20_000)
    expect(await left()).toBeLessThan(21_000)
    await sandbox.setTimeout(600_000)
    expect(await left()).toBeGreaterThan(500_000)
    await sdk.Sandbox.setTimeout(sandbox.sandboxId, 1_000, options)
    while (await sandbox.isRunning());
    await expect(sandbox.setTimeout(5_000)).rejects.toThrow(sdk.NotFoundError)
    expect(await sdk.Sandbox.kill(sandbox.sandboxId, options)).toBe(false)
  })

  test("are connected to by their ids, with no less time than they had", async () => {
    const sandbox = await create({ timeoutMs: 300_000 })
    await sandbox.files.write("note", "kept")
    const other = await sdk.Sandbox.connect(sandbox.sandboxId, { ...options, timeoutMs: 10_000 })
    expect(await other.files.read("note")).toBe("kept")
    expect((await other.getInfo()).endAt.getTime() - Date.now()).toBeGreaterThan(250_000)
    await sdk.Sandbox.connect(sandbox.sandboxId, { ...options, timeoutMs: 900_000 })
    expect((await other.getInfo()).endAt.getTime() - Date.now()).toBeGreaterThan(800_000)
    await expect(sdk.Sandbox.connect("0".repeat(40), options)).rejects.toThrow(sdk.NotFoundError)
    await expect(sdk.Sandbox.connect("nonsense", options)).rejects.toThrow(sdk.NotFoundError)
  })

  test("are listed in pages, by state and by metadata", async () => {
    const tag = `list-${version}`
    const all = [await create({ metadata: { tag, n: "0" } }), await create({ metadata: { tag, n: "1" } })]
    all.push(await create({ metadata: { tag, n: "2", "with space": "a&b=c é" } }))
    const list = async (query: object, more: object = {}): Promise<string[]> => {
      const pages = sdk.Sandbox.list({ ...options, query, ...more })
      const ids: string[] = []
      while (pages.hasNext) ids.push(...(await pages.nextItems()).map(({ sandboxId }) => sandboxId))
      return ids
    }
    const ids = all.map(({ sandboxId }) => sandboxId)
    expect(await list({ metadata: { tag } })).toEqual(ids.toReversed())
    expect(await list({ metadata: { tag } }, { limit: 1 })).toEqual(ids.toReversed())
    expect(await list({ metadata: { tag, n: "1" } })).toEqual([ids[1]])
    expect(await list({ metadata: { tag, "with space": "a&b=c é" } })).toEqual([ids[2]])
    expect(await list({ metadata: { tag: "other" } })).toEqual([])
    await all[0]?.pause()
    expect(await list({ metadata: { tag }, state: ["paused"] })).toEqual([ids[0]])
    expect(await list({ metadata: { tag }, state: ["running"] })).toEqual([ids[2], ids[1]])
    expect(await list({ metadata: { tag }, state: ["running", "paused"] })).toEqual(ids.toReversed())
    const first = sdk.Sandbox.list({ ...options, query: { metadata: { tag } }, limit: 2 })
    expect((await first.nextItems()).map(({ metadata }) => metadata["n"])).toEqual(["2", "1"])
    expect(first.hasNext).toBe(true)
    const second = sdk.Sandbox.list({
      ...options,
      query: { metadata: { tag } },
      limit: 2,
      nextToken: first.nextToken ?? "",
    })
    expect((await second.nextItems()).map(({ metadata }) => metadata["n"])).toEqual(["0"])
    expect(second.hasNext).toBe(false)
    expect(await list({ metadata: { tag } }, { order: "asc" })).toEqual(ids)
    expect(await list({ metadata: { tag }, template: "base" })).toEqual(ids.toReversed())
    expect(await list({ metadata: { tag }, startedAfter: new Date(Date.now() + 60_000) })).toEqual([])
  })

  test("are the business of whoever has a key, and of nobody else", async () => {
    const sandbox = await create()
    const wrong = { ...options, apiKey: `e2b_${"0".repeat(64)}` }
    await expect(sdk.Sandbox.create(wrong)).rejects.toThrow(sdk.AuthenticationError)
    await expect(sdk.Sandbox.kill(sandbox.sandboxId, wrong)).rejects.toThrow(sdk.AuthenticationError)
    const ask = (path: string, headers: Record<string, string>): Promise<Response> =>
      fetch(`${options.sandboxUrl}${path}`, { method: "POST", headers, body: "{}" })
    const to = { "e2b-sandbox-id": sandbox.sandboxId, "e2b-sandbox-port": "49983", "content-type": "application/json" }
    expect((await ask("/process.Process/List", to)).status).toBe(401)
    expect((await ask("/process.Process/List", { ...to, "x-access-token": "0".repeat(64) })).status).toBe(401)
    expect((await ask("/files?path=x", to)).status).toBe(401)
    const readOnly = { ...options, apiKey: await keyOf(system.api, { scopes: ["sessions:read"] }) }
    expect((await sdk.Sandbox.getInfo(sandbox.sandboxId, readOnly)).sandboxId).toBe(sandbox.sandboxId)
    await expect(sdk.Sandbox.create(readOnly)).rejects.toThrow("403")
  })

  test("that are asked for in a wrong way are refused with what is wrong", async () => {
    await expect(create({}, "no-such-template")).rejects.toThrow("template 'no-such-template' not found")
    await expect(create({ envs: { "not a name": "x" } })).rejects.toThrow("400")
    await expect(create({ metadata: { e2b: "mine" } })).rejects.toThrow("not free")
    const limited = sdk.Sandbox.list({ ...options, limit: 1_000 })
    await expect(limited.nextItems()).rejects.toThrow("limit must be 1 to 100")
  })

  test("sleep and go on where they were", async () => {
    const sandbox = await create({ timeoutMs: 60_000 })
    const counting = await sandbox.commands.run("i=0; while :; do i=$((i+1)); echo $i > ~/count; sleep 0.02; done", {
      background: true,
    })
    await counting.disconnect()
    expect(await sandbox.pause()).toBe(true)
    expect(await sandbox.pause()).toBe(false)
    expect((await sandbox.getInfo()).state).toBe("paused")
    expect(await sandbox.isRunning()).toBe(false)
    await expect(sandbox.commands.run("true")).rejects.toThrow(sdk.SandboxNotFoundError)
    const again = await sdk.Sandbox.connect(sandbox.sandboxId, { ...options, timeoutMs: 120_000 })
    expect((await again.getInfo()).state).toBe("running")
    expect((await again.getInfo()).endAt.getTime() - Date.now()).toBeGreaterThan(100_000)
    expect((await again.commands.list()).some(({ pid }) => pid === counting.pid)).toBe(true)
    await sandbox.commands.run('a=$(cat ~/count); while [ "$a" = "$(cat ~/count)" ]; do sleep 0.02; done')
    expect(await sdk.Sandbox.kill(sandbox.sandboxId, options)).toBe(true)
    await expect(sandbox.pause()).rejects.toThrow(sdk.NotFoundError)
  })

  test("are put to sleep at their end, and woken by what comes, if asked to", async () => {
    const lifecycle = { onTimeout: "pause", autoResume: true }
    const sandbox = await create({ timeoutMs: 1_000, lifecycle })
    await sdk.Sandbox.setTimeout(sandbox.sandboxId, 600_000, options)
    await sandbox.files.write("note", "kept")
    await sdk.Sandbox.setTimeout(sandbox.sandboxId, 1_000, options)
    const state = async (): Promise<string> => (await sdk.Sandbox.getInfo(sandbox.sandboxId, options)).state
    while ((await state()) !== "paused");
    expect((await sandbox.getInfo()).lifecycle).toMatchObject({ onTimeout: "pause", autoResume: true })
    expect(await sandbox.files.read("note")).toBe("kept")
    expect(await state()).toBe("running")
    expect((await sandbox.getInfo()).endAt.getTime() - Date.now()).toBeGreaterThan(250_000)
    const stubborn = await create({ timeoutMs: 1_000, lifecycle: { onTimeout: "pause" } })
    while ((await sdk.Sandbox.getInfo(stubborn.sandboxId, options)).state !== "paused");
    await expect(stubborn.files.read("note")).rejects.toThrow(sdk.TimeoutError)
    await stubborn.connect({ timeoutMs: 60_000 })
    expect((await stubborn.commands.run("echo back")).stdout).toBe("back\n")
  })

  test("what is under way when one is killed or paused ends", async () => {
    for (const end of [(one: Sandbox) => one.pause(), (one: Sandbox) => one.kill()]) {
      const sandbox = await create()
      const handle = await sandbox.commands.run("sleep 1000", { background: true, timeoutMs: 0 })
      const over = handle.wait().then(
        () => "ended",
        (thrown: Error) => thrown.message,
      )
      await end(sandbox)
      expect(await over).toMatch(/terminated|not found|killed or reached/)
    }
  })
})
