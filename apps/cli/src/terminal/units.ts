const sizes = ["B", "KB", "MB", "GB", "TB", "PB"]

export function bytesText(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < sizes.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${sizes[unit]}`
}

const spans = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
] as const

/** The largest unit that fits: `3m`. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, ms) / 1000
  const [unit, size] = spans.find(([, size]) => seconds >= size) ?? ["s", 1]
  return `${Math.floor(seconds / size)}${unit}`
}

export function ageText(iso: string, now = Date.now()): string {
  return durationText(now - Date.parse(iso))
}
