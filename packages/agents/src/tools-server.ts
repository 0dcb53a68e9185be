type Environment = Readonly<Record<string, string | undefined>>

/** What Warren's own tools are called among an agent's servers of tools. */
export const toolsName = "warren"

export interface ToolsServer {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** The session's tools as an MCP server over stdio; undefined where there are none. */
export function toolsServer(env: Environment): ToolsServer | undefined {
  const { WARREN_TOOLS_PROGRAM: program, WARREN_TOOLS: socket } = env
  if (!program || !socket) return undefined
  return { command: "node", args: [program, "--tools"], env: { WARREN_TOOLS: socket } }
}
