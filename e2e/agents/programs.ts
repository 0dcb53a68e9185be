import { existsSync } from "node:fs"
import { join, resolve } from "node:path"

const modules = resolve(import.meta.dirname, "../node_modules")

/** Other people's agents, as their makers ship them. */
export const programs = {
  opencode: join(modules, "opencode-linux-x64/bin/opencode"),
  claude: join(modules, "@anthropic-ai/claude-code-linux-x64/claude"),
}

for (const path of Object.values(programs))
  if (!existsSync(path)) throw new Error(`${path} is not there: npm install in e2e/`)
