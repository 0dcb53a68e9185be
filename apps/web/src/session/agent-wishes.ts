import type { Input } from "@warren/sdk/routes.ts"

export type AgentSpec = Input<"POST /v1/sessions/{session}/agent">["spec"]
type Key = NonNullable<Input<"POST /v1/sessions">["keys"]>[number]

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

/** What has to be said besides the kind. */
export function wantsCommand(kind: AgentKind): boolean {
  return kind === "acp" || kind === "command"
}

export function specOf(kind: AgentKind, line: string): AgentSpec | undefined {
  const [cmd = "", ...args] = line.trim().split(/\s+/)
  switch (kind) {
    case "none":
      return undefined
    case "scripted":
      return { adapter: "scripted" }
    case "opencode":
      return { adapter: "opencode" }
    case "claude":
      return { adapter: "command", cmd: "claude", speaks: "claude" }
    case "acp":
      return { adapter: "acp", cmd, args }
    case "command":
      return { adapter: "command", cmd, args }
  }
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
