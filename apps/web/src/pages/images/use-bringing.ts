import { readFeed } from "@warren/sdk/feed.ts"
import type { Input, Item } from "@warren/sdk/routes.ts"
import { useCallback, useEffect, useRef, useState } from "react"
import { http } from "../../data/api.ts"
import { queries } from "../../data/query.ts"

type BringingRoute = "POST /v1/images/pull" | "POST /v1/images/make"
type Progress = Item<BringingRoute>

const linesMax = 200

export interface Brought {
  readonly name: string
  readonly lines: readonly string[]
  readonly bytes: number
  readonly totalBytes: number
  readonly state: "busy" | "done" | "failed"
  readonly fault?: unknown
}

export interface BringingState {
  readonly now: Brought | undefined
  readonly isBusy: boolean
  start<R extends BringingRoute>(route: R, input: Input<R> & { readonly name: string }): void
  /** Stops it; what has come is kept for the next try. */
  stop(): void
}

/** One image on its way here. Leaving the page stops it. */
export function useBringing(): BringingState {
  const [now, setNow] = useState<Brought>()
  const stopper = useRef<AbortController>(undefined)
  const stop = useCallback(() => {
    stopper.current?.abort()
    setNow(undefined)
  }, [])
  useEffect(() => () => stopper.current?.abort(), [])
  const start = useCallback<BringingState["start"]>((route, input) => {
    stopper.current?.abort()
    const leave = (stopper.current = new AbortController())
    const change = (step: (now: Brought) => Brought): void => {
      if (!leave.signal.aborted) setNow((last) => step(last ?? begun(input.name)))
    }
    setNow(begun(input.name))
    bring(route, input, leave.signal, (item) => change((last) => gone(last, item))).then(
      () => {
        change((last) => ({ ...last, state: "done" }))
        void queries.invalidateQueries({ queryKey: ["GET /v1/images"] })
      },
      (fault: unknown) => change((last) => ({ ...last, state: "failed", fault })),
    )
  }, [])
  return { now, isBusy: now?.state === "busy", start, stop }
}

async function bring<R extends BringingRoute>(
  route: R,
  input: Input<R>,
  signal: AbortSignal,
  each: (item: Progress) => void,
): Promise<void> {
  for await (const { item } of readFeed(http, route, input, { signal })) each(item)
}

function begun(name: string): Brought {
  return { name, lines: [], bytes: 0, totalBytes: 0, state: "busy" }
}

function gone(last: Brought, { text, bytes, totalBytes }: Progress): Brought {
  const lines = text === undefined || text === last.lines.at(-1) ? last.lines : [...last.lines, text].slice(-linesMax)
  return { ...last, lines, bytes: bytes ?? last.bytes, totalBytes: totalBytes ?? last.totalBytes }
}
