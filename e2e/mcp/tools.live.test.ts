import { afterAll, describe, expect, test } from "vitest"
import { ApiSystem } from "../api/system.ts"
import { kinds, McpClient } from "./clients.ts"
import { everyTool, textOf, type Known } from "./every-tool.ts"

const system = await ApiSystem.start()
afterAll(() => system[Symbol.asyncDispose]())

describe.each(kinds)("the official client over %s", (kind) => {
  test("lists and calls every tool", { timeout: 240_000 }, async () => {
    await using mcp = await McpClient.open(system, kind)
    const { tools } = await mcp.client.listTools()
    expect(mcp.client.getServerVersion()).toMatchObject({ name: "warren" })
    expect(mcp.client.getInstructions()).toContain("create_session")
    const known: Known = { session: `every-${kind}` }
    for (const { tool, args, check } of everyTool) check(await mcp.call(tool, args(known)), known)
    expect([...mcp.called].toSorted()).toEqual(tools.map(({ name }) => name).toSorted())
    for (const { inputSchema } of tools) expect(JSON.stringify(inputSchema)).not.toContain("$ref")
  })

  test("is told what it did wrong, and goes on", async () => {
    await using mcp = await McpClient.open(system, kind)
    await expect(mcp.call("no_such_tool", {})).rejects.toMatchObject({ code: -32_602 })
    expect(await mcp.call("get_session", {})).toMatchObject({ isError: true })
    const absent = await mcp.call("get_session", { session: "never-was" })
    expect(absent).toMatchObject({ isError: true, structuredContent: { error: { code: "not_found" } } })
    const long = await mcp.call("run_command", { session: "x", command: "y".repeat(600_000) })
    expect(long).toMatchObject({ isError: true, structuredContent: { error: { code: "invalid" } } })
    expect((await mcp.call("list_sessions", {})).isError ?? false).toBe(false)
  })

  test("has a command ended when it cancels the call, and only then", async () => {
    await using mcp = await McpClient.open(system, kind)
    const session = `cancel-${kind}`
    await mcp.call("create_session", { name: session, network: { mode: "none" } })
    const stop = new AbortController()
    const wishes = { session, command: "echo $$ > /tmp/pid; exec sleep 1000" }
    const running = mcp.call("run_command", wishes, { signal: stop.signal })
    const sleepers = async () => textOf(await mcp.call("run_command", { session, command: "pgrep -c sleep; true" }))
    await expect.poll(sleepers, { timeout: 20_000 }).toMatch(/^1\n/)
    stop.abort("enough")
    await expect(running).rejects.toThrow()
    await expect.poll(sleepers, { timeout: 20_000 }).toMatch(/^0\n/)
    await mcp.call("delete_session", { session })
  })

  test("leaves, and what it waited for is ended", async () => {
    await using all = await McpClient.open(system, "http")
    const session = `leave-${kind}`
    await all.call("create_session", { name: session, network: { mode: "none" } })
    const mcp = await McpClient.open(system, kind)
    const running = mcp.call("run_command", { session, command: "exec sleep 1000" }).catch(() => "cut off")
    const { shell } = (await mcp.call("open_shell", { session })).structuredContent
    const inShell = mcp.call("run_in_shell", { session, shell, command: "sleep 1000" }).catch(() => "cut off")
    const sleepers = async () => textOf(await all.call("run_command", { session, command: "pgrep -c sleep; true" }))
    await expect.poll(sleepers, { timeout: 20_000 }).toMatch(/^2\n/)
    await mcp[Symbol.asyncDispose]()
    expect(await Promise.all([running, inShell])).toEqual(["cut off", "cut off"])
    await expect.poll(sleepers, { timeout: 20_000 }).toMatch(/^0\n/)
    await all.call("delete_session", { session })
  })

  test("has a command that outlives the wait go on", async () => {
    await using mcp = await McpClient.open(system, kind)
    const session = `wait-${kind}`
    await mcp.call("create_session", { name: session, network: { mode: "none" } })
    const command = "echo first; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo second"
    const { structuredContent: first } = await mcp.call("run_command", { session, command, waitMs: 500 })
    expect(first.isRunning).toBe(true)
    await mcp.call("run_command", { session, command: "touch /tmp/go" })
    const read = () => mcp.call("read_output", { session, pid: first.pid, after: 6, waitMs: 5_000 })
    await expect
      .poll(async () => (await read()).structuredContent, { timeout: 30_000 })
      .toMatchObject({ output: "second\n", isRunning: false })
    await mcp.call("delete_session", { session })
  })
})

describe("long output", () => {
  test("of a command is shown at both ends, and the rest can be read", async () => {
    await using mcp = await McpClient.open(system, "http")
    const session = "long"
    await mcp.call("create_session", { name: session, network: { mode: "none" } })
    const told = await mcp.call("run_command", { session, command: "seq 1 100000", outputBytes: 1_000 })
    const { leftOut, pid, output, outputBytes } = told.structuredContent
    expect(outputBytes).toBe(588_895)
    expect(output).toMatch(/^1\n2\n3\n.*left out here: read_output \{.*\}.*\n99999\n100000\n$/s)
    let [text, after] = ["", 0]
    do {
      const part = await mcp.call("read_output", { session, pid, after, limit: 256 * 1024 })
      text += part.structuredContent.output
      after = part.structuredContent.next as number
    } while (after < outputBytes)
    expect(text.split("\n").slice(0, -1)).toEqual(Array.from({ length: 100_000 }, (_, n) => String(n + 1)))
    expect(text.slice(0, leftOut.after)).toBe(output.slice(0, leftOut.after))
    const { shell } = (await mcp.call("open_shell", { session })).structuredContent
    const inShell = await mcp.call("run_in_shell", { session, shell, command: "seq 1 100000", outputBytes: 1_000 })
    const kept = inShell.structuredContent.leftOut
    const rest = await mcp.call("read_file", { session, path: kept.path, offset: kept.offset, limit: 100 })
    expect(rest.structuredContent).toMatchObject({ size: 588_895, nextOffset: kept.offset + 100 })
    expect(rest.structuredContent.content).toBe(text.slice(kept.offset, kept.offset + 100))
    await mcp.call("delete_session", { session })
  })

  test("of a file is cut between characters", async () => {
    await using mcp = await McpClient.open(system, "http")
    const session = "cut"
    await mcp.call("create_session", { name: session, network: { mode: "none" } })
    const content = "zwölf Boxkämpfer — 漢字 🎉".repeat(50)
    await mcp.call("write_file", { session, path: "/tmp/text", content })
    let [text, offset] = ["", 0 as number | undefined]
    while (offset !== undefined) {
      const part = await mcp.call("read_file", { session, path: "/tmp/text", offset, limit: 33 })
      text += part.structuredContent.content
      offset = part.structuredContent.nextOffset as number | undefined
    }
    expect(text).toBe(content)
    await mcp.call("delete_session", { session })
  })
})

describe("resources", () => {
  test("are sessions, files and feeds, by address", async () => {
    await using mcp = await McpClient.open(system, "http")
    const session = "resources"
    await mcp.call("create_session", { name: session, network: { mode: "none" } })
    await mcp.call("write_file", { session, path: "/tmp/näme.txt", content: "0123456789" })
    await mcp.call("run_command", { session, command: "printf '\\377\\000' > /tmp/bytes" })
    const { resources } = await mcp.client.listResources()
    expect(resources.map(({ uri }) => uri)).toEqual(
      expect.arrayContaining(["warren://resources", "warren://resources/feed"]),
    )
    const { resourceTemplates } = await mcp.client.listResourceTemplates()
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain(
      "warren://{session}/files/{+path}{?offset,limit}",
    )
    const read = async (uri: string) => (await mcp.client.readResource({ uri })).contents[0]
    expect(await read("warren://resources")).toMatchObject({ mimeType: "application/json" })
    expect(await read("warren://resources/files/tmp/n%C3%A4me.txt")).toMatchObject({ text: "0123456789" })
    expect(await read("warren://resources/files/tmp/n%C3%A4me.txt?offset=2&limit=3")).toMatchObject({
      text: "234",
      _meta: { size: 10, nextOffset: 5 },
    })
    expect(await read("warren://resources/files/tmp/bytes")).toMatchObject({ blob: "/wA=" })
    await expect(read("warren://resources/files/tmp/none")).rejects.toMatchObject({ code: -32_002 })
    await expect(read("warren://never-was")).rejects.toMatchObject({ code: -32_002 })
    await expect(read("http://elsewhere")).rejects.toMatchObject({ code: -32_002 })
    await mcp.call("start_agent", { session, spec: { adapter: "scripted" } })
    await mcp.call("prompt_agent", { session, text: '[[script:{"steps":[{"text":"for the feed"}]}]]' })
    expect(((await read("warren://resources/feed")) as { text: string }).text).toContain("for the feed")
    const completed = await mcp.client.complete({
      ref: { type: "ref/resource", uri: "warren://{session}" },
      argument: { name: "session", value: "reso" },
    })
    expect(completed.completion.values).toEqual(["resources"])
    await mcp.call("delete_session", { session })
  })
})
