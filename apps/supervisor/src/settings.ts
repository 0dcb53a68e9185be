import { text } from "@warren/base/settings.ts"

export const settings = {
  cmd: text("AGENT_CMD", "claude", "With `--stdio`: the program that is the agent."),
  args: text("AGENT_ARGS", "", "Its arguments: words, or a JSON list of them."),
  user: text("AGENT_USER", "", "Who it runs as, when the supervisor is root."),
  folder: text("AGENT_WORKSPACE", "/workspace", "Where it works."),
  tools: text(
    "WARREN_TOOLS",
    "/tmp/.warren/hub.tools.sock",
    "With `--tools`: where the session's supervisor takes what its agent asks.",
  ),
  bootstrapFile: text("WARREN_BOOTSTRAP_FILE", "", "Where the bootstrap lies; gone once read."),
}
