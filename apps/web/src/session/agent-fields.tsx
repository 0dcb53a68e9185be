import type { ReactElement } from "react"
import { Field, SelectField } from "../parts/field.tsx"
import { agentKinds, usualModels, usualPrograms, type AgentKind, type AgentWish, type Key } from "./agent-wishes.ts"
import "../style/form.css"

interface AgentFieldsProps {
  readonly wish: AgentWish
  /** Those it may use. */
  readonly keys: readonly Key[]
  readonly kinds?: readonly (typeof agentKinds)[number][]
  readonly wrong?: string | undefined
  set(changes: Partial<AgentWish>): void
}

/** Which agent, and what has to be said about it. */
export function AgentFields({ wish, keys, kinds = agentKinds, wrong, set }: AgentFieldsProps): ReactElement {
  const { agent, command, models } = wish
  const usual = usualPrograms[agent]
  const hasProgram = agent !== "none" && agent !== "scripted"
  return (
    <div className={agent === "opencode" ? "columns narrow" : "columns"}>
      <SelectField
        name="Agent"
        onChange={({ target }) => set({ agent: target.value as AgentKind })}
        said={agentKinds.find(([one]) => one === agent)?.[2]}
        value={agent}
        wrong={wrong}
      >
        {kinds.map(([kind, name]) => (
          <option key={kind} value={kind}>
            {name}
          </option>
        ))}
      </SelectField>
      {agent === "opencode" && (
        <Field
          name="Models"
          onChange={({ target }) => set({ models: target.value })}
          placeholder={usualModels(keys).join(", ") || "anthropic/claude-sonnet-4-5"}
          said="The first is asked; the next, when one fails."
          value={models}
        />
      )}
      {hasProgram && (
        <Field
          name={usual ? "Program" : "Command"}
          onChange={({ target }) => set({ command: target.value })}
          placeholder={usual ?? "opencode acp"}
          required={usual === undefined}
          said={usual && "Where it lies, if not where programs do."}
          value={command}
        />
      )}
    </div>
  )
}
