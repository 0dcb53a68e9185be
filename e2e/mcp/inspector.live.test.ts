import { execFile } from "node:child_process"
import { once } from "node:events"
import { createServer, request, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { resolve } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, test } from "vitest"
import { ApiSystem } from "../api/system.ts"
import { cli } from "./clients.ts"
import { everyTool, type Known, type Told } from "./every-tool.ts"

const run = promisify(execFile)
const inspector = resolve(import.meta.dirname, "../node_modules/@modelcontextprotocol/inspector/cli/build/index.js")
const system = await ApiSystem.start()
let proxy: Server
let url: string

/** The inspector's command line sends no headers of ours: what stands before it adds the token. */
beforeAll(async () => {
  proxy = createServer((asked, answer) => {
    const headers = { ...asked.headers, host: `127.0.0.1:${system.port}`, authorization: `Bearer ${system.token}` }
    const { method, url: path } = asked
    const passed = request({ host: "127.0.0.1", port: system.port, method, path, headers }, (told) => {
      answer.writeHead(told.statusCode ?? 502, told.headers)
      told.pipe(answer)
    })
    passed.on("error", () => answer.destroy())
    answer.on("close", () => passed.destroy())
    asked.pipe(passed)
  })
  proxy.listen(0, "127.0.0.1")
  await once(proxy, "listening")
  url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`
})
afterAll(async () => {
  proxy.closeAllConnections()
  proxy.close()
  await system[Symbol.asyncDispose]()
})

const targets = { http: () => [url], stdio: () => [process.execPath, cli, "mcp"] }

async function inspect(kind: keyof typeof targets, ...words: string[]): Promise<unknown> {
  const env = { ...process.env, WARREN_HOME: system.home.path, WARREN_PORT: String(system.port) }
  const { stdout } = await run(process.execPath, [inspector, ...targets[kind](), ...words], { env })
  return JSON.parse(stdout)
}

function wordsOf(tool: string, args: Record<string, unknown>): string[] {
  const pairs = Object.entries(args).map(([name, value]) => {
    return `${name}=${typeof value === "object" ? JSON.stringify(value) : String(value)}`
  })
  return ["--method", "tools/call", "--tool-name", tool, ...pairs.flatMap((pair) => ["--tool-arg", pair])]
}

// What takes long is to start each of them: both go on side by side.
describe.concurrent.each(["http", "stdio"] as const)("the inspector's command line over %s", (kind) => {
  test("lists and calls every tool", { timeout: 600_000 }, async ({ expect }) => {
    const { tools } = (await inspect(kind, "--method", "tools/list")) as { tools: { name: string }[] }
    expect(new Set(everyTool.map(({ tool }) => tool))).toEqual(new Set(tools.map(({ name }) => name)))
    const known: Known = { session: `inspected-${kind}` }
    for (const { tool, args, check } of everyTool) {
      check((await inspect(kind, ...wordsOf(tool, args(known)))) as Told, known)
    }
    const { resourceTemplates } = (await inspect(kind, "--method", "resources/templates/list")) as {
      resourceTemplates: unknown[]
    }
    expect(resourceTemplates).toHaveLength(3)
  })
})
