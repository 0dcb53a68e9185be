import type { Clock } from "@warren/base/clock.ts"
import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { Acp } from "./acp/acp.ts"
import type { AgentAdapter } from "./adapter.ts"
import { Command } from "./command/command.ts"
import { OpenCode } from "./opencode/opencode.ts"
import { Scripted } from "./scripted/scripted.ts"

export interface AdapterContext {
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where agents work unless they say otherwise. */
  readonly cwd?: string | undefined
  /** Where an adapter keeps what is not the agent's work. */
  readonly folder: string
}

export function adapterOf(spec: AgentSpec, { clock, env, cwd, folder }: AdapterContext): AgentAdapter {
  switch (spec.adapter) {
    case "scripted":
      return new Scripted({ clock, env, cwd: spec.cwd ?? cwd })
    case "command":
      return new Command(spec, env, cwd)
    case "acp":
      return new Acp(spec, env, spec.cwd ?? cwd ?? process.cwd())
    case "opencode":
      return new OpenCode({ spec, clock, env, places: { cwd: cwd ?? process.cwd(), folder: `${folder}/opencode` } })
  }
}
