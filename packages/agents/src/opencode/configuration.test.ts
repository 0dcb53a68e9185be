import { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { expect, test } from "vitest"
import { launchOf, policyOf, type OpenCodeSpec } from "./configuration.ts"
import { failureOf, retryFailure } from "./failure.ts"
import { messageIdAt } from "./message-id.ts"

const places = { cwd: "/workspace", folder: "/own" }
const env = {
  ...{ OPENAI_BASE_URL: "http://127.0.0.1:3128/openai/v1", OPENAI_API_KEY: "lease_secret" },
  ...{ ANTHROPIC_BASE_URL: "http://127.0.0.1:3128/anthropic", ANTHROPIC_API_KEY: "lease_other" },
  WARREN_PERSONA_FILE: "/home/user/persona.md",
}

function specOf(more: object): OpenCodeSpec {
  const spec = AgentSpec.parse({ adapter: "opencode", ...more })
  if (spec.adapter !== "opencode") throw new Error("not OpenCode")
  return spec
}

function configurationOf(more: object): Record<string, unknown> {
  const spec = specOf(more)
  const { OPENCODE_CONFIG_CONTENT = "" } = launchOf(spec, spec.models, env, places).env
  expect(OPENCODE_CONFIG_CONTENT).not.toContain("lease_")
  return JSON.parse(OPENCODE_CONFIG_CONTENT) as Record<string, unknown>
}

test("the providers of a session's leases are known by the models; their keys only by the names of variables", () => {
  expect(configurationOf({ models: ["openai/gpt-5", "anthropic/opus", "openai/a/b"] })).toMatchObject({
    ...{
      model: "openai/gpt-5",
      small_model: "openai/gpt-5",
      snapshot: false,
      enabled_providers: ["openai", "anthropic"],
    },
    provider: {
      openai: {
        options: { baseURL: "http://127.0.0.1:3128/openai/v1", apiKey: "{env:OPENAI_API_KEY}" },
        models: { "gpt-5": {}, "a/b": {} },
      },
      anthropic: { options: { baseURL: "http://127.0.0.1:3128/anthropic/v1" }, models: { opus: {} } },
    },
  })
})

test("the session's tools are offered where there are some", () => {
  expect(configurationOf({})).not.toHaveProperty("mcp")
  const tools = { WARREN_TOOLS_PROGRAM: "/own/supervisor.mjs", WARREN_TOOLS: "/own/tools.sock" }
  const { OPENCODE_CONFIG_CONTENT = "" } = launchOf(specOf({}), [], { ...env, ...tools }, places).env
  expect(JSON.parse(OPENCODE_CONFIG_CONTENT)).toMatchObject({
    mcp: {
      warren: {
        ...{ type: "local", enabled: true, command: ["node", "/own/supervisor.mjs", "--tools"] },
        environment: { WARREN_TOOLS: "/own/tools.sock" },
      },
    },
  })
})

test("other providers are as they are written, and so is the rest", () => {
  const providers = { local: { speaks: "openai-chat", baseUrl: "http://127.0.0.1:1/v1", keyVariable: "LOCAL_KEY" } }
  expect(configurationOf({ models: ["local/m"], providers, config: { theme: "dark", snapshot: true } })).toMatchObject({
    provider: { local: { npm: "@ai-sdk/openai-compatible", options: { apiKey: "{env:LOCAL_KEY}" } } },
    ...{ theme: "dark", snapshot: true },
  })
})

test("what it is to heed is outside of the repository", () => {
  expect(configurationOf({ instructions: "Be brief." })).toMatchObject({
    instructions: ["/home/user/persona.md", "/own/instructions.md"],
  })
})

test("what is not simply allowed comes as a request, and is answered by the policy", () => {
  expect(configurationOf({})).toMatchObject({ permission: { "*": "allow" } })
  expect(configurationOf({ permissions: "deny" })).toMatchObject({ permission: { edit: "ask", bash: "ask" } })
  const permissions = { bash: "ask", read: "deny", "*": "allow" } as const
  expect(configurationOf({ permissions })["permission"]).toEqual({ "*": "allow", bash: "ask", read: "ask" })
  expect(["bash", "read", "edit"].map((name) => policyOf(permissions, name))).toEqual(["ask", "deny", "allow"])
})

test("failures have causes", () => {
  const api = (statusCode: number, message: string) =>
    failureOf({ name: "APIError", data: { statusCode, message } }).cause
  expect([401, 402, 403, 408, 429, 500, 504, 529, 400].map((status) => api(status, "no"))).toEqual([
    ...["auth", "billing", "auth", "timeout", "rate_limit", "transport", "timeout", "rate_limit", "verdict"],
  ])
  expect(api(429, "insufficient_quota")).toBe("billing")
  expect(failureOf({ name: "ProviderAuthError" })).toEqual({ cause: "auth", message: "ProviderAuthError" })
  const retries = ["Connection reset by server", "Request timed out", "check your billing details", "slow down"]
  expect(retries.map((message) => retryFailure(message).cause)).toEqual([
    ...["transport", "timeout", "billing", "rate_limit"],
  ])
})

test("ids of messages sort by time, as OpenCode's own", () => {
  expect(messageIdAt(1_794_772_421_031)).toMatch(/^msg_1e0c5c9a7000[0-9A-Za-z]{14}$/)
  expect(messageIdAt(1_794_772_421_031) < "msg_1e0c5c9a7001000").toBe(true)
})
