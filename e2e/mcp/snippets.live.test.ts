import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { chmod, mkdir, writeFile } from "node:fs/promises"
import { resolve } from "node:path"
import { promisify } from "node:util"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { parse } from "smol-toml"
import { afterAll, describe, expect, test } from "vitest"
import { ApiSystem } from "../api/system.ts"
import { cli } from "./clients.ts"

const run = promisify(execFile)
const modules = resolve(import.meta.dirname, "../node_modules")
const guide = readFileSync(resolve(import.meta.dirname, "../../docs/guides/mcp.md"), "utf8")
const system = await ApiSystem.start()
afterAll(() => system[Symbol.asyncDispose]())

interface Snippet {
  readonly client: string
  readonly language: string
  readonly code: string
}

/** What the guide tells to write where, with this Warren's address and token in it. */
function snippets(): Snippet[] {
  return guide.split(/^## /m).flatMap((part) => {
    const [client = ""] = part.split("\n")
    return [...part.matchAll(/^```(json|toml|sh)\n(.*?)^```$/gms)].map(([, language = "", code = ""]) => ({
      client,
      language,
      code: code.replaceAll("https://warren.example", system.url).replaceAll("wrn_…", system.token),
    }))
  })
}

const of = (client: string): Snippet[] => snippets().filter((one) => one.client === client)

/** A home of somebody who has `warren` in their path. */
async function visitor(): Promise<{ folder: TempFolder; env: Record<string, string> }> {
  const folder = await TempFolder.make()
  const program = folder.at("bin/warren")
  await mkdir(folder.at("bin"))
  await writeFile(program, `#!/bin/sh\nexec "${process.execPath}" "${cli}" "$@"\n`)
  await chmod(program, 0o755)
  const here = { WARREN_HOME: system.home.path, WARREN_PORT: String(system.port) }
  const env = { PATH: `${folder.at("bin")}:${process.env["PATH"]}`, HOME: folder.path, CI: "1", ...here }
  return { folder, env }
}

describe("every snippet is what its client reads", () => {
  interface Server {
    readonly command?: string | readonly string[]
    readonly args?: readonly string[]
    readonly url?: string
    readonly headers?: Readonly<Record<string, string>>
  }

  function serversIn({ language, code }: Snippet): Server[] {
    const read = (language === "toml" ? parse(code) : JSON.parse(code)) as Record<string, Record<string, Server>>
    return ["mcpServers", "servers", "mcp", "mcp_servers"].flatMap((key) => Object.values(read[key] ?? {}))
  }

  test.each(["Claude Desktop", "Cursor", "VS Code", "OpenCode", "Codex"])("%s", (client) => {
    const found = of(client).flatMap(serversIn)
    expect(found).toHaveLength(of(client).length)
    for (const { command, args = [], url, headers } of found) {
      if (url === undefined) expect([command, ...args].flat().slice(0, 2)).toEqual(["warren", "mcp"])
      else expect(url).toBe(`${system.url}/mcp`)
      if (headers) expect(headers["Authorization"]).toMatch(/^Bearer (\$\{input:|wrn_)/)
    }
  })
})

test("Claude Code connects in both ways the guide tells", { timeout: 180_000 }, async () => {
  const lines = of("Claude Code").flatMap(({ code }) => code.trim().split("\n"))
  expect(lines).toHaveLength(2)
  for (const line of lines) {
    const { folder, env } = await visitor()
    await using _ = folder
    const claude = `${modules}/@anthropic-ai/claude-code-linux-x64/claude`
    await run("bash", ["-c", `claude() { "${claude}" "$@"; }\n${line}`], { env, cwd: folder.path })
    const { stdout } = await run(claude, ["mcp", "list"], { env, cwd: folder.path })
    expect(stdout).toMatch(/warren: .*Connected/)
  }
})

test("OpenCode connects in both ways the guide tells", { timeout: 180_000 }, async () => {
  for (const { code } of of("OpenCode")) {
    const { folder, env } = await visitor()
    await using _ = folder
    await writeFile(folder.at("opencode.json"), code)
    const opencode = `${modules}/opencode-linux-x64/bin/opencode`
    const { stdout, stderr } = await run(opencode, ["mcp", "list"], { env, cwd: folder.path })
    expect(stdout + stderr).toMatch(/warren.*connected/s)
  }
})
