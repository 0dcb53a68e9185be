import type { Tool } from "./tool.ts"
import { agentTools } from "./tools/agents.ts"
import { commandTools } from "./tools/commands.ts"
import { fileTools } from "./tools/files.ts"
import { portTools } from "./tools/ports.ts"
import { screenshotTool } from "./tools/screenshot.ts"
import { searchTool } from "./tools/search.ts"
import { sessionTools } from "./tools/sessions.ts"
import { shellTools } from "./tools/shells.ts"

/** Everything an MCP client can ask Warren to do. */
export const tools: readonly Tool[] = [
  ...sessionTools,
  ...commandTools,
  ...shellTools,
  ...fileTools,
  searchTool,
  ...portTools,
  screenshotTool,
  ...agentTools,
]
