import { useEffect, useState } from "react"
import { useCall } from "../../data/query.ts"
import type { Sample } from "./rates.ts"

const lookEveryMs = 2_000
/** Two minutes. */
const samplesMax = 60

/** What it used lately, the newest last. */
export function useUsage(id: string, isOn: boolean): readonly Sample[] {
  const { data, dataUpdatedAt } = useCall("GET /v1/sessions/{id}/stats", { id }, { isOn, everyMs: lookEveryMs })
  const [samples, setSamples] = useState<readonly Sample[]>([])
  useEffect(() => {
    if (!data) return
    setSamples((last) => [...last, { atMs: dataUpdatedAt, stats: data }].slice(-samplesMax))
  }, [data, dataUpdatedAt])
  return samples
}
