import { Fault } from "@warren/base/fault.ts"
import { bundleProgram } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { agentTools, toolLimits } from "@warren/protocol/hub/tools.ts"
import { HostPlaces } from "@warren/user-plane/hub/testing/host-places.ts"
import { feedUntil, HubSystem, isDone } from "@warren/user-plane/hub/testing/hub-system.ts"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { afterAll, beforeAll, expect, test, vi } from "vitest"

// Many processes on a machine that others use, too.
vi.setConfig({ testTimeout: 180_000 })

const scripted = AgentSpec.parse({ adapter: "scripted" })
let folder: TempFolder
let program: string

beforeAll(async () => {
  folder = await TempFolder.make()
  program = await bundleProgram(new URL("../../apps/supervisor/src/main.ts", import.meta.url), folder)
})
afterAll(() => folder[Symbol.asyncDispose]())

interface Asked {
  readonly session: string
  readonly tool: string
  readonly input: unknown
}

/** A hub with a supervisor, and where that takes what its agent asks. */
async function started(name: string) {
  const places = new HostPlaces(program, folder.path)
  const system = new HubSystem(folder.at(`${name}.db`), places)
  const asked: Asked[] = []
  system.tools = async (session, tool, input) => {
    asked.push({ session, tool, input })
    if (tool === "list_sessions") return { sessions: [] }
    throw new Fault("not_found", "nobody is here", { hint: "look elsewhere" })
  }
  await system.start(name, scripted)
  const close = async (): Promise<void> => {
    await system[Symbol.asyncDispose]()
    await places[Symbol.asyncDispose]()
  }
  return { system, places, asked, door: folder.at(`${name}.1.tools.sock`), close }
}

async function client(door: string): Promise<Client> {
  const made = new Client({ name: "test", version: "1" })
  const env = { PATH: process.env["PATH"] ?? "", WARREN_TOOLS: door }
  await made.connect(new StdioClientTransport({ command: process.execPath, args: [program, "--tools"], env }))
  return made
}

test("the official client lists every tool and calls it; the hub knows which session asks", async () => {
  const { asked, door, close } = await started("one")
  const mcp = await client(door)
  try {
    const { tools } = await mcp.listTools()
    expect(tools.map(({ name }) => name)).toEqual(Object.keys(agentTools))
    for (const { description, inputSchema } of tools) {
      expect(description).not.toBe("")
      expect(inputSchema.type).toBe("object")
    }
    const good = await mcp.callTool({ name: "list_sessions", arguments: {} })
    expect(good).toMatchObject({ structuredContent: { sessions: [] } })
    const bad = await mcp.callTool({ name: "terminate_session", arguments: { session: "other" } })
    expect(bad).toMatchObject({ isError: true, content: [{ text: "not_found: nobody is here (look elsewhere)" }] })
    expect(asked).toEqual([
      { session: "one", tool: "list_sessions", input: {} },
      { session: "one", tool: "terminate_session", input: { session: "other" } },
    ])
    await expect(mcp.callTool({ name: "no_such_tool", arguments: {} })).rejects.toThrow("there is no tool")
    await expect(mcp.callTool({ name: "send_message", arguments: { session: 7 } })).rejects.toThrow("session")
  } finally {
    await mcp.close()
    await close()
  }
})

test("an agent asks from within its turn; nonsense is answered line by line, and a hub that was cut off answers later", async () => {
  const { system, places, close } = await started("two")
  try {
    const lines = [
      "no",
      '{"jsonrpc":"1.0"}',
      '{"jsonrpc":"2.0","id":1,"method":"dance"}',
      '{"jsonrpc":"2.0","method":"notifications/initialized"}',
      '{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"1999-01-01"}}',
      '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_sessions"}}',
    ]
    const run = `printf '%s\\n' ${lines.map((line) => `'${line}'`).join(" ")} | node "$WARREN_TOOLS_PROGRAM" --tools`
    const hub = system.hub.of("two")
    places.cut("two")
    const text = `[[script:${JSON.stringify({ steps: [{ run }] })}]]`
    const { messageId } = hub.prompt({ text, channel: "web:default", mode: "followup", wishes: {} })
    const items = await feedUntil(hub, isDone(messageId))
    const final = items.findLast((item) => item.type === "message.finalize")
    const [part] = final?.type === "message.finalize" ? final.message.parts : []
    const said = part?.type === "tool" && typeof part.result === "string" ? part.result : ""
    const answers = said
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { id: unknown; error?: { code: number } })
    expect(answers.map(({ id, error }) => [id, error?.code])).toEqual([
      [null, -32_700],
      [null, -32_600],
      [1, -32_601],
      ["a", undefined],
      [3, undefined],
    ])
    expect(said).toContain('"protocolVersion":"2025-06-18"')
    expect(said).toContain(String.raw`{\"sessions\":[]}`)
  } finally {
    await close()
  }
})

test("only so much is asked at once, and a session without a supervisor says so", async () => {
  const { system, door, close } = await started("three")
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  system.tools = async () => {
    await held
    return { sessions: [] }
  }
  const mcp = await client(door)
  try {
    const calls = Array.from({ length: toolLimits.callsMax + 1 }, () =>
      mcp.callTool({ name: "list_sessions", arguments: {} }),
    )
    const first = await Promise.race(calls)
    expect(first).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("limit: ") }] })
    release()
    const all = await Promise.all(calls)
    expect(all.filter(({ isError }) => isError)).toHaveLength(1)
    await system.hub.of("three").stop()
    const gone = await mcp.callTool({ name: "list_sessions", arguments: {} })
    expect(gone).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("unavailable: ") }] })
  } finally {
    await mcp.close()
    await close()
  }
})
