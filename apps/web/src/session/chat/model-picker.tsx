import { useState, type ReactElement } from "react"

/** The model that is asked for, remembered for each session; undefined: the agent's own choice. */
export function useModel(
  session: string,
  models: readonly string[],
): [string | undefined, (model: string | undefined) => void] {
  const key = `warren.${session}.model`
  const [model, setModel] = useState(() => localStorage.getItem(key) ?? undefined)
  const choose = (chosen: string | undefined): void => {
    setModel(chosen)
    if (chosen === undefined) localStorage.removeItem(key)
    else localStorage.setItem(key, chosen)
  }
  // One that the agent does not have any more is not asked for.
  return [model !== undefined && models.includes(model) ? model : undefined, choose]
}

interface ModelPickerProps {
  readonly model: string | undefined
  readonly models: readonly string[]
  choose(model: string | undefined): void
}

export function ModelPicker({ model, models, choose }: ModelPickerProps): ReactElement | null {
  if (models.length === 0) return null
  return (
    <select
      aria-label="Model"
      className="model-picker"
      onChange={({ target }) => choose(target.value || undefined)}
      value={model ?? ""}
    >
      <option value="">The agent's own model</option>
      {models.map((one) => (
        <option key={one}>{one}</option>
      ))}
    </select>
  )
}
