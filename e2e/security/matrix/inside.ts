import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { tools } from "@warren/mcp/tools.ts"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { httpTransport } from "../../mcp/clients.ts"
import { everyTool, textOf, type Told } from "../../mcp/every-tool.ts"
import type { People } from "./people.ts"
import { envdPaths } from "./routes.ts"

interface Seen {
  readonly asked: number
  readonly wrong: readonly unknown[]
}

/** Every path of envd, with everything that does not open this sandbox. */
export async function closedEnvd(people: People): Promise<Seen> {
  const { machine, alice, bob } = people
  const strangers: Record<string, Record<string, string>> = {
    nobody: {},
    nonsense: { "x-access-token": "0".repeat(64) },
    "what opens bob's sandbox": { "x-access-token": bob.envd },
    "her token for the API": { "x-access-token": alice.token, authorization: `Bearer ${alice.token}` },
    "bob's token for the API": { "x-api-key": bob.token, authorization: `Bearer ${bob.token}` },
  }
  const wrong: unknown[] = []
  let asked = 0
  for (const path of envdPaths().filter((one) => one !== "/health")) {
    for (const [who, headers] of Object.entries(strangers)) {
      for (const method of path === "/files" ? ["GET", "POST"] : path.includes(".") ? ["POST"] : ["GET"]) {
        const init = {
          method,
          headers: { ...headers, "e2b-sandbox-id": alice.things.sandbox },
          ...(method === "POST" ? { body: "{}" } : {}),
        }
        const answer = await fetch(`http://localhost:${machine.port}${path}?path=/etc/hostname`, init)
        asked++
        if (answer.status !== 401) wrong.push([method, path, who, answer.status])
      }
    }
  }
  return { asked, wrong }
}

/** What each tool needs: a tool that is not in it is refused by the test until it is. */
export function toolRows(): { readonly tool: string; readonly scope: string }[] {
  const [, ...lines] = readFileSync(join(import.meta.dirname, "mcp-rows.csv"), "utf8")
    .trim()
    .split("\n")
  return lines.map((line) => line.split(",")).map(([tool = "", scope = ""]) => ({ tool, scope }))
}

export const toolNames = (): string[] => tools.map(({ name }) => name)

/** Every tool on alice's session: with bob's token, with hers without the scope, and with hers for other sessions. */
export async function closedTools(people: People): Promise<Seen> {
  const limited = await people.limited()
  const wrong: unknown[] = []
  let asked = 0
  const refuses = async (token: string, some: readonly string[]): Promise<void> => {
    await using client = await ToolClient.open(people, token)
    for (const name of some) {
      const told = await client.call(name)
      asked++
      const isRefused = told.isError === true && /^(forbidden|not_found)/.test(textOf(told))
      if (!isRefused) wrong.push([name, token === people.bob.token ? "bob" : "alice", textOf(told).slice(0, 200)])
    }
  }
  const rows = toolRows()
  // Of these everybody has their own.
  const others = rows.map(({ tool }) => tool).filter((tool) => tool !== "create_session" && tool !== "list_sessions")
  for (const token of [people.bob.token, limited]) await refuses(token, others)
  for (const scope of new Set(rows.map((row) => row.scope))) {
    const some = rows.filter((row) => row.scope === scope).map(({ tool }) => tool)
    await refuses(await people.without(scope), some)
  }
  return { asked, wrong }
}

/** Somebody's client, which asks about alice's session. */
class ToolClient implements AsyncDisposable {
  readonly #client = new Client({ name: "nosy", version: "1" })
  readonly #transport: ReturnType<typeof httpTransport>
  readonly #things: People["alice"]["things"]

  private constructor(people: People, token: string) {
    this.#transport = httpTransport(`http://localhost:${people.machine.port}`, token)
    this.#things = people.alice.things
  }

  static async open(people: People, token: string): Promise<ToolClient> {
    const one = new ToolClient(people, token)
    await one.#client.connect(one.#transport)
    return one
  }

  async call(name: string): Promise<Told> {
    const { session, pid } = this.#things
    const known = { session, pid, shell: "shl_00000000000000000000", questionId: "q" }
    const own: Record<string, Record<string, unknown>> = {
      create_session: { name: "x" },
      fork_session: { session, name: "x" },
    }
    const args = own[name] ?? everyTool.find(({ tool }) => tool === name)?.args(known) ?? { session }
    return (await this.#client.callTool({ name, arguments: args })) as Told
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#transport.terminateSession()
    await this.#client.close()
  }
}
