import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { guidanceFiles } from "../guidance.ts"
import type { Launch } from "../process-group.ts"
import { toolsName, toolsServer } from "../tools-server.ts"

export type OpenCodeSpec = Extract<AgentSpec, { adapter: "opencode" }>
type Environment = Readonly<Record<string, string | undefined>>
type Provider = OpenCodeSpec["providers"][string]

/** What OpenCode's own packages are called that speak to a provider; they are in it, nothing is fetched. */
const packages: Readonly<Record<Provider["speaks"], string>> = {
  openai: "@ai-sdk/openai",
  "openai-chat": "@ai-sdk/openai-compatible",
  anthropic: "@ai-sdk/anthropic",
}

/** What the leases of a session put into its environment. */
const leased: Readonly<Record<string, (env: Environment) => Provider>> = {
  openai: (env) => ({ speaks: "openai", baseUrl: env["OPENAI_BASE_URL"], keyVariable: "OPENAI_API_KEY" }),
  anthropic: (env) => ({
    speaks: "anthropic",
    baseUrl: env["ANTHROPIC_BASE_URL"] && `${env["ANTHROPIC_BASE_URL"].replace(/\/$/, "")}/v1`,
    keyVariable: "ANTHROPIC_API_KEY",
  }),
}

/** Tools that change something or go out; the others are not asked about. */
const askedAbout = ["edit", "bash", "webfetch", "websearch", "external_directory", "doom_loop"]

/** It keeps to itself: it asks nobody for updates or lists of models, and loads no helpers. */
const quiet = {
  OPENCODE_DISABLE_AUTOUPDATE: "1",
  OPENCODE_DISABLE_MODELS_FETCH: "1",
  OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
  OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
  // A repository with tools of its own makes it fetch a package first: where nothing can be fetched, that must be seen soon.
  npm_config_fetch_retries: "1",
  npm_config_fetch_retry_mintimeout: "500",
  npm_config_fetch_retry_maxtimeout: "1000",
}

export interface Places {
  readonly cwd: string
  /** Outside of the repository: what OpenCode keeps. */
  readonly folder: string
}

/** How OpenCode is started for a spec. Two that are equal need no restart between them. */
export function launchOf(spec: OpenCodeSpec, models: readonly string[], env: Environment, places: Places): Launch {
  const { cwd, folder } = places
  const all = { ...env, ...spec.env }
  return {
    cmd: spec.cmd,
    args: [],
    cwd: spec.cwd ?? cwd,
    env: {
      ...all,
      ...quiet,
      OPENCODE_MODELS_PATH: modelsPathOf(folder),
      OPENCODE_CONFIG_CONTENT: JSON.stringify(configurationOf(spec, models, all, folder)),
      XDG_DATA_HOME: `${folder}/data`,
      XDG_STATE_HOME: `${folder}/state`,
      XDG_CACHE_HOME: `${folder}/cache`,
    },
  }
}

/** A list of no models: the built-in one takes two seconds and a quarter of a gigabyte to read, and names nothing that is used. */
export function modelsPathOf(folder: string): string {
  return `${folder}/models.json`
}

export function instructionsPathOf(folder: string): string {
  return `${folder}/instructions.md`
}

function configurationOf(spec: OpenCodeSpec, models: readonly string[], env: Environment, folder: string): object {
  const provider = Object.fromEntries(providersOf(spec, models, env))
  const [first] = models
  const own = spec.instructions === undefined ? [] : [instructionsPathOf(folder)]
  const instructions = [...guidanceFiles(env), ...own]
  return {
    // What a person takes back is what was said; files stay as they are, and no second history of them is kept.
    snapshot: false,
    share: "disabled",
    autoupdate: false,
    permission: permissionsOf(spec.permissions),
    ...(Object.keys(provider).length > 0 ? { provider, enabled_providers: Object.keys(provider) } : {}),
    ...(first === undefined ? {} : { model: first, small_model: first }),
    ...(instructions.length === 0 ? {} : { instructions }),
    ...toolsOf(env),
    ...spec.config,
  }
}

function* providersOf(
  spec: OpenCodeSpec,
  models: readonly string[],
  env: Environment,
): Generator<[string, object], void, void> {
  const names = new Set([...Object.keys(spec.providers), ...models.map((model) => splitModel(model).providerID)])
  for (const name of names) {
    const { speaks, baseUrl, keyVariable } = spec.providers[name] ?? leased[name]?.(env) ?? { speaks: "openai-chat" }
    const own = models.map(splitModel).filter(({ providerID }) => providerID === name)
    const options = {
      ...(baseUrl === undefined ? {} : { baseURL: baseUrl }),
      // By its variable: neither a key nor a lease is ever in a file.
      ...(keyVariable === undefined ? {} : { apiKey: `{env:${keyVariable}}` }),
      // How long a model may be silent is watched by who drives it.
      timeout: false,
    }
    const list = Object.fromEntries(own.map(({ modelID }) => [modelID, {}]))
    yield [name, { npm: packages[speaks], options, models: list }]
  }
}

function toolsOf(env: Environment): object {
  const server = toolsServer(env)
  if (!server) return {}
  const { command, args, env: environment } = server
  return { mcp: { [toolsName]: { type: "local", command: [command, ...args], environment, enabled: true } } }
}

function permissionsOf(permissions: OpenCodeSpec["permissions"]): object {
  const names = new Set([...askedAbout, ...(typeof permissions === "string" ? [] : Object.keys(permissions))])
  names.delete("*")
  // What is not simply allowed comes as a request, and is answered by the policy.
  const asked = [...names].filter((name) => policyOf(permissions, name) !== "allow")
  return { "*": "allow", ...Object.fromEntries(asked.map((name) => [name, "ask"])) }
}

export function policyOf(permissions: OpenCodeSpec["permissions"], name: string): "allow" | "ask" | "deny" {
  if (typeof permissions === "string") return permissions
  return permissions[name] ?? permissions["*"] ?? "allow"
}

export function splitModel(model: string): { readonly providerID: string; readonly modelID: string } {
  const at = model.indexOf("/")
  return { providerID: model.slice(0, at), modelID: model.slice(at + 1) }
}
