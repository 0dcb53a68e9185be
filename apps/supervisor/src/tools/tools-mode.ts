import type { Readable, Writable } from "node:stream"
import { hear } from "../stdio/speak.ts"
import { McpServer } from "./mcp-server.ts"
import { ToolClient } from "./tool-client.ts"

/** MCP on these streams until the input ends; the tools are asked for at the door of the session's supervisor. */
export async function toolsMode(door: string, input: Readable, output: Writable): Promise<void> {
  let client: Promise<ToolClient> | undefined
  const connected = (): Promise<ToolClient> => {
    // Tried again by the next who asks: the supervisor may have been replaced.
    client ??= ToolClient.connect(door).catch((failure: unknown) => {
      client = undefined
      throw failure
    })
    return client
  }
  const server = new McpServer({
    ask: async (tool, asked) => {
      try {
        return await (await connected()).ask(tool, asked)
      } catch (failure) {
        if ((await client?.catch(() => undefined))?.isGone) client = undefined
        throw failure
      }
    },
    send: (line) => void output.write(`${line}\n`),
  })
  const answers = new Set<Promise<void>>()
  for await (const line of hear(input)) {
    if (typeof line !== "string" || line.trim() === "") continue
    const answer = server.hear(line)
    answers.add(answer)
    void answer.finally(() => answers.delete(answer))
  }
  await Promise.all(answers)
  ;(await client?.catch(() => undefined))?.[Symbol.dispose]()
}
