import { guidanceOf } from "../guidance.ts"
import type { Launch } from "../process-group.ts"
import { toolsName, toolsServer } from "../tools-server.ts"

/** Lives on between prompts, speaks in lines as it thinks, and asks on the same lines for what it may not do by itself. */
const speaking = [
  ...["-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"],
  ...["--include-partial-messages", "--permission-prompt-tool", "stdio"],
  // Servers of tools that a repository names are not started: whoever wants some says so in the arguments.
  "--strict-mcp-config",
]

/** It talks to nobody but its model, and says soon that it cannot: whoever drives it decides what then. */
const quiet = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1",
  CLAUDE_CODE_MAX_RETRIES: "1",
}

/** Claude Code, started so that it can be driven. What is said about its environment and arguments wins. */
export async function claudeCode({ args, env, ...launch }: Launch): Promise<Launch> {
  const guidance = await guidanceOf(env)
  const told = guidance === "" ? [] : ["--append-system-prompt", guidance]
  return { ...launch, args: [...speaking, ...told, ...toolsOf(env), ...args], env: { ...quiet, ...env } }
}

function toolsOf(env: Launch["env"]): string[] {
  const server = toolsServer(env)
  return server ? ["--mcp-config", JSON.stringify({ mcpServers: { [toolsName]: server } })] : []
}
