import type { FaultData } from "@warren/base/fault.ts"
import type { LayerView } from "../layer/merged.ts"
import type { Place } from "../layer/place.ts"
import type { ArchiveLimits } from "../limits.ts"

interface Made {
  readonly root: string
  readonly scratch: string
  readonly limits: ArchiveLimits
}

/** What the other process is asked for: its last argument, as JSON. Both ends are of one build. */
export type Job =
  /** The archive is what it reads. */
  | ({ readonly do: "unpack" } & Made)
  | ({ readonly do: "repack"; readonly upper: string } & Made)
  | { readonly do: "remove"; readonly path: string }
  /** Answers a line for each line it reads. */
  | { readonly do: "view"; readonly layers: readonly LayerView[] }

export type Look =
  | { readonly see: "stat" | "link" | "resolve"; readonly place: Place }
  | { readonly see: "text"; readonly place: Place; readonly bytesMax: number }

/** A line that it writes. */
export type Told = { readonly ok?: unknown } | { readonly fault: FaultData }
