import { parse } from "smol-toml"

/** The line of a key in a TOML text: the first one without which the text does not have the key. */
export function lineOf(text: string, path: readonly PropertyKey[]): number {
  const lines = text.split("\n")
  let lastWithout = 0
  for (let count = 1; count <= lines.length; count++) {
    const part = parsed(lines.slice(0, count).join("\n"))
    // In the middle of a value that has several lines.
    if (part === undefined) continue
    if (has(part, path)) return lastWithout + 1
    lastWithout = count
  }
  return 1
}

function parsed(text: string): unknown {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}

function has(value: unknown, path: readonly PropertyKey[]): boolean {
  const [first, ...rest] = path
  if (first === undefined) return true
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, first)) return false
  return has((value as Record<PropertyKey, unknown>)[first], rest)
}
