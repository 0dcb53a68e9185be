import type { ReactElement } from "react"

interface UsagePlotProps {
  readonly name: string
  /** The newest last. */
  readonly values: readonly number[]
  /** Drawn in; what is above it cannot be. */
  readonly limit?: number | undefined
  /** What stands beside it. */
  readonly shown: string
  readonly said?: string | undefined
}

const width = 160
const height = 40
/** So that the first few do not look like a whole history. */
const roomLeast = 15

/** A small plot of what was used lately, with the limit where there is one. */
export function UsagePlot({ name, values, limit, shown, said }: UsagePlotProps): ReactElement {
  const most = Math.max(...values, 0)
  // A limit far above is not worth flattening everything for.
  const isLimitSeen = limit !== undefined && most > limit / 8
  const top = Math.max(isLimitSeen ? limit : 0, most * 1.2, Number.MIN_VALUE)
  const room = Math.max(values.length, roomLeast)
  const points = values.map((value, index) => {
    const x = width - ((values.length - 1 - index) * width) / (room - 1)
    return `${x.toFixed(1)},${(height - (value / top) * (height - 2)).toFixed(1)}`
  })
  const first = points[0]?.split(",")[0] ?? width
  const line = isLimitSeen ? height - (limit / top) * (height - 2) : undefined
  return (
    <figure className="usage-plot">
      <figcaption>
        <span className="soft">{name}</span>
        <strong>{shown}</strong>
        {said && <span className="soft tiny">{said}</span>}
      </figcaption>
      <svg aria-label={`${name}: ${shown}`} preserveAspectRatio="none" role="img" viewBox={`0 0 ${width} ${height}`}>
        {points.length > 1 && (
          <>
            <polygon points={`${first},${height} ${points.join(" ")} ${width},${height}`} />
            <polyline points={points.join(" ")} />
          </>
        )}
        {line !== undefined && <line x1="0" x2={width} y1={line} y2={line} />}
      </svg>
    </figure>
  )
}
