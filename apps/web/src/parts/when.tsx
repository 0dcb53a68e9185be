import { useEffect, useState, type ReactElement } from "react"

const units = [
  [1_000, 60, "s"],
  [60_000, 60, "m"],
  [3_600_000, 24, "h"],
  [86_400_000, Infinity, "d"],
] as const

/** `3m`: how long ago, in as few letters as will do. */
export function ago(ms: number): string {
  if (ms < 5_000) return "now"
  const unit = units.find(([size, most]) => ms < size * most) ?? units[3]
  return `${Math.floor(ms / unit[0])}${unit[2]}`
}

/** `2m 14s`, `3.1 s`, `12 ms`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.floor(ms / 1_000)
  return seconds < 3_600
    ? `${Math.floor(seconds / 60)}m ${seconds % 60}s`
    : `${Math.floor(seconds / 3_600)}h ${Math.floor((seconds % 3_600) / 60)}m`
}

export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"]
  const power = Math.min(units.length - 1, Math.floor(Math.log(Math.max(1, count)) / Math.log(1_000)))
  const value = count / 1_000 ** power
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`
}

/** A moment, as how long ago it was. */
export function When({ at }: { readonly at: string }): ReactElement {
  useTick(30_000)
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {ago(Date.now() - Date.parse(at))}
    </time>
  )
}

/** Draws again this often: for what shows the time. */
export function useTick(everyMs: number, isOn = true): void {
  const [, tick] = useState(0)
  useEffect(() => {
    if (!isOn) return
    const timer = setInterval(() => tick((count) => count + 1), everyMs)
    return () => clearInterval(timer)
  }, [everyMs, isOn])
}
