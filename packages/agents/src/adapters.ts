import type { Clock } from "@warren/base/clock.ts"
import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import type { AgentAdapter } from "./adapter.ts"
import { Command } from "./command/command.ts"
import { Scripted } from "./scripted/scripted.ts"

export interface AdapterContext {
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where agents work unless they say otherwise. */
  readonly cwd?: string | undefined
}

export function adapterOf(spec: AgentSpec, { clock, env, cwd }: AdapterContext): AgentAdapter {
  switch (spec.adapter) {
    case "scripted":
      return new Scripted({ clock, env, cwd: spec.cwd ?? cwd })
    case "command":
      return new Command(spec, env, cwd)
  }
}
