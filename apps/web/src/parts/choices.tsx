import type { ReactElement } from "react"

interface ChoicesProps<T extends string> {
  readonly name: string
  readonly value: T
  readonly options: readonly (readonly [value: T, shown: string])[]
  choose(value: T): void
}

/** One of a few, all of them in sight. Arrow keys move between them. */
export function Choices<T extends string>({ name, value, options, choose }: ChoicesProps<T>): ReactElement {
  const move = (by: number): void => {
    const at = options.findIndex(([one]) => one === value)
    const next = options[(at + by + options.length) % options.length]
    if (next) choose(next[0])
  }
  return (
    <div
      aria-label={name}
      className="choices"
      onKeyDown={({ key }) => {
        if (key === "ArrowRight" || key === "ArrowDown") move(1)
        if (key === "ArrowLeft" || key === "ArrowUp") move(-1)
      }}
      role="radiogroup"
    >
      {options.map(([one, shown]) => (
        <button
          aria-checked={one === value}
          key={one}
          onClick={() => choose(one)}
          role="radio"
          tabIndex={one === value ? 0 : -1}
          type="button"
        >
          {shown}
        </button>
      ))}
    </div>
  )
}
