import { mkdirSync, writeFileSync } from "node:fs"
import { Acp } from "@warren/agents/acp/acp.ts"
import { agentConformance } from "@warren/agents/conformance.ts"
import { ScriptedLlm } from "@warren/agents/testing/llm/scripted-llm.ts"
import { prompted } from "@warren/agents/testing/llm/step.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { afterAll, beforeAll } from "vitest"
import { programs } from "./programs.ts"

let folder: TempFolder
let llm: ScriptedLlm
beforeAll(async () => {
  folder = await TempFolder.make()
  llm = await ScriptedLlm.listen()
  writeFileSync(folder.at("models.json"), "{}")
  mkdirSync(folder.at(".config/opencode/node_modules"), { recursive: true })
  const lock = { packages: { "": { dependencies: { "@opencode-ai/plugin": "*" } } } }
  writeFileSync(folder.at(".config/opencode/package-lock.json"), JSON.stringify(lock))
})
afterAll(async () => {
  await llm[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

/** OpenCode once more, by the protocol that any editor speaks with it. */
function openCode(): Acp {
  const config = {
    snapshot: false,
    provider: {
      openai: {
        npm: "@ai-sdk/openai",
        options: { baseURL: `${llm.url}/v1`, apiKey: "lease" },
        models: { one: {} },
      },
    },
    ...{ enabled_providers: ["openai"], model: "openai/one", small_model: "openai/one", permission: { bash: "ask" } },
  }
  const env = {
    ...{ OPENCODE_CONFIG_CONTENT: JSON.stringify(config), OPENCODE_MODELS_PATH: folder.at("models.json") },
    ...{ OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1" },
    ...{ OPENCODE_DISABLE_DEFAULT_PLUGINS: "1", HOME: folder.path, PATH: process.env["PATH"] ?? "" },
  }
  const spec = AgentSpec.parse({ adapter: "acp", cmd: programs.opencode, args: ["acp"], env })
  if (spec.adapter !== "acp") throw new Error("not ACP")
  return new Acp(spec, {}, folder.path)
}

const bash = (command: string): { tool: string; args: object } => ({
  tool: "bash",
  args: { command, description: "does it" },
})

agentConformance("OpenCode by ACP", openCode, {
  hello: "hello",
  sleeping: (pidFile) => prompted(bash(`echo $$ > ${pidFile}; sleep 1000`), { text: "slept" }),
  failing: prompted({ status: 400, message: "no" }),
})
