import type { Input } from "@warren/sdk/routes.ts"

export type AgentSpec = Input<"POST /v1/sessions/{session}/agent">["spec"]
export type Key = NonNullable<Input<"POST /v1/sessions">["keys"]>[number]

/** The kinds of agents a person chooses from. */
export const agentKinds = [
  ["none", "No agent", "Only a sandbox."],
  ["scripted", "Demo agent", "It has no model and needs no key; it shows how everything works."],
  ["opencode", "OpenCode", "The image needs the program opencode."],
  ["claude", "Claude Code", "The image needs the program claude."],
  ["acp", "Agent Client Protocol", "Any program that speaks ACP."],
  ["command", "Command", "Any program: the prompt is its last argument, what it prints is the answer."],
] as const

export type AgentKind = (typeof agentKinds)[number][0]

/** What stands in a form about an agent. */
export interface AgentWish {
  readonly agent: AgentKind
  /** The program and its arguments; empty for the usual one. */
  readonly command: string
  /** In order, between spaces or commas; empty for those that fit the keys. */
  readonly models: string
}

/** What the program is called if nobody says otherwise; those without one have to be told. */
export const usualPrograms: Readonly<Partial<Record<AgentKind, string>>> = { opencode: "opencode", claude: "claude" }

export function specOf({ agent, command, models }: AgentWish, keys: readonly Key[]): AgentSpec | undefined {
  const [cmd = usualPrograms[agent] ?? "", ...args] = words(command)
  switch (agent) {
    case "none":
      return undefined
    case "scripted":
      return { adapter: "scripted" }
    case "opencode":
      return { adapter: "opencode", cmd, models: models.trim() === "" ? usualModels(keys) : words(models) }
    case "claude":
      return { adapter: "command", cmd, args, speaks: "claude" }
    case "acp":
      return { adapter: "acp", cmd, args }
    case "command":
      return { adapter: "command", cmd, args }
  }
}

/** A model that can be asked with each of the keys. */
export function usualModels(keys: readonly Key[]): string[] {
  const known = { "llm:anthropic": "anthropic/claude-sonnet-4-5", "llm:openai": "openai/gpt-5" } as const
  return Object.entries(known).flatMap(([scope, model]) => (keys.some((key) => key.scope === scope) ? [model] : []))
}

function words(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean)
}

/** The keys an agent can use without seeing them: those whose secrets are there. */
export function keysFor(kind: AgentKind, repo: string, secrets: readonly string[]): Key[] {
  const llms: Key[] = [
    ...(secrets.includes("ANTHROPIC_API_KEY") ? [{ scope: "llm:anthropic" } as const] : []),
    ...(secrets.includes("OPENAI_API_KEY") ? [{ scope: "llm:openai" } as const] : []),
  ]
  const usesModel = kind !== "none" && kind !== "scripted"
  const host = hostOf(repo)
  const hasToken = secrets.some((name) => name.startsWith("GIT_TOKEN"))
  return [...(usesModel ? llms : []), ...(host && hasToken ? [{ scope: "git:write", destination: host } as const] : [])]
}

/** Where a repository lies: `owner/name` means GitHub. */
export function hostOf(repo: string): string | undefined {
  if (/^[\w.-]+\/[\w.-]+$/.test(repo)) return "github.com"
  try {
    return new URL(repo).host || undefined
  } catch {
    return /^[\w.-]+@([\w.-]+):/.exec(repo)?.[1]
  }
}
