import { Fault, isCancellation, messageOf } from "./fault.ts"

export type Level = "debug" | "info" | "warn" | "error"
export type Fields = Readonly<Record<string, string | number | boolean | null | undefined>>

/** Writes one line for one thing that happened. The event's name is the wire's name; what varies is a field. */
export interface Log {
  (level: Level, event: string, fields?: Fields): void
  /** The same log, with these fields on every line. */
  with(fields: Fields): Log
}

interface LogOptions {
  readonly now?: () => number
  readonly level?: Level
}

const ranks: Readonly<Record<Level, number>> = { debug: 0, info: 1, warn: 2, error: 3 }
/** A field longer than this is cut: a log line must not become a copy of somebody's data. */
const fieldCharsMax = 2048

/** A log of JSON lines. `write` gets each whole line, with its newline. */
export function createLog(write: (line: string) => void, options: LogOptions = {}): Log {
  const now = options.now ?? Date.now
  const least = ranks[options.level ?? "info"]
  const make = (bound: Fields): Log => {
    const log = (level: Level, event: string, fields: Fields = {}): void => {
      if (ranks[level] < least) return
      const line = { time: new Date(now()).toISOString(), level, event, ...bound, ...fields }
      write(`${JSON.stringify(line, cut)}\n`)
    }
    return Object.assign(log, { with: (fields: Fields) => make({ ...bound, ...fields }) })
  }
  return make({})
}

/** For tests and for libraries used without one. */
export const silentLog: Log = createLog(() => undefined)

/** Does the work and writes one line about it: outcome and duration. */
export async function timed<T>(log: Log, event: string, fields: Fields, work: () => Promise<T>): Promise<T> {
  const start = performance.now()
  const ms = (): number => Math.round((performance.now() - start) * 100) / 100
  try {
    const result = await work()
    log("info", event, { ...fields, ok: true, ms: ms() })
    return result
  } catch (thrown) {
    const fault = Fault.from(thrown)
    const level = fault.code === "internal" ? "error" : isCancellation(thrown) ? "info" : "warn"
    log(level, event, { ...fields, ok: false, ms: ms(), code: fault.code, message: messageOf(thrown) })
    throw thrown
  }
}

function cut(_key: string, value: unknown): unknown {
  return typeof value === "string" && value.length > fieldCharsMax ? `${value.slice(0, fieldCharsMax)}…` : value
}
