import type { ReactElement } from "react"
import { Field } from "../../parts/field.tsx"
import type { LimitWish } from "./wishes.ts"

const fields: readonly (readonly [keyof LimitWish, string, string])[] = [
  ["cpus", "Processors", "1"],
  ["memoryGb", "Memory in GiB", "0.5"],
  ["diskGb", "Disk in GiB", "10"],
]

interface LimitFieldsProps {
  readonly limits: LimitWish
  set(limits: LimitWish): void
}

export function LimitFields({ limits, set }: LimitFieldsProps): ReactElement {
  return (
    <div className="columns narrow">
      {fields.map(([key, name, usual]) => (
        <Field
          inputMode="decimal"
          key={key}
          min={0.01}
          name={name}
          onChange={({ target }) => set({ ...limits, [key]: target.value })}
          placeholder={usual}
          step="any"
          type="number"
          value={limits[key]}
        />
      ))}
    </div>
  )
}
