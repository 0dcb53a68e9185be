import { open } from "node:fs/promises"
import type { Clock } from "@warren/base/clock.ts"
import { errnoOf } from "@warren/base/fault.ts"
import { AccessEntry } from "@warren/protocol/user-plane/access.ts"
import { logFile, logFilesOf } from "../log-file.ts"

export const accessLimits = {
  /** Files kept besides the current one. */
  olderFiles: 7,
  /** Refusals written in a minute; of the rest only how many, so that nonsense cannot push out what happened. */
  refusalsPerMinute: 100,
  /** As much of the newest file as one answer is read from. */
  tailBytes: 512 * 1024,
} as const

/** What the control plane has asked of this runner: written by the runner, in its user's folder, for its user. */
export class AccessLog {
  readonly #path: string
  readonly #clock: Clock
  readonly #write: (line: string) => void
  readonly #onLost: (thrown: unknown) => void
  /** Lines of this turn of the event loop, which leave together. */
  #lines = ""
  #minute = 0
  #refusals = 0

  constructor(path: string, clock: Clock, onLost: (thrown: unknown) => void) {
    this.#path = path
    this.#clock = clock
    this.#write = logFile(path, accessLimits.olderFiles)
    this.#onLost = onLost
  }

  /** Throws when it cannot be written. */
  add(entry: Omit<AccessEntry, "time">): void {
    this.#flush()
    this.#write(this.#line(entry))
  }

  /** The same for what is done already: written with others, and what goes wrong is told elsewhere. */
  note(entry: Omit<AccessEntry, "time">): void {
    if (this.#lines === "") setImmediate(() => this.#flush())
    this.#lines += this.#line(entry)
  }

  refuse(entry: Omit<AccessEntry, "time">): void {
    const minute = Math.floor(this.#clock.monotonic() / 60_000)
    if (minute !== this.#minute) this.#summarise(minute)
    if (++this.#refusals <= accessLimits.refusalsPerMinute) this.add(entry)
  }

  /** The newest entries, the newest last. */
  async read(limit: number): Promise<AccessEntry[]> {
    this.#flush()
    let found: AccessEntry[] = []
    for (const file of logFilesOf(this.#path, accessLimits.olderFiles)) {
      found = [...entriesOf(await tailOf(file)), ...found]
      if (found.length >= limit) break
    }
    return fitting(found.slice(-limit))
  }

  #line(entry: Omit<AccessEntry, "time">): string {
    return `${JSON.stringify({ time: new Date(this.#clock.now()).toISOString(), ...entry })}\n`
  }

  #flush(): void {
    const lines = this.#lines
    this.#lines = ""
    if (lines === "") return
    try {
      this.#write(lines)
    } catch (thrown) {
      this.#onLost(thrown)
    }
  }

  #summarise(minute: number): void {
    const more = this.#refusals - accessLimits.refusalsPerMinute
    this.#minute = minute
    this.#refusals = 0
    if (more > 0) this.add({ user: "", call: "", result: "forbidden", reason: `${more} more were refused in a minute` })
  }
}

/** The newest that fit into one message. */
function fitting(entries: readonly AccessEntry[]): AccessEntry[] {
  let bytes = 0
  const from = entries.findLastIndex((entry) => (bytes += JSON.stringify(entry).length) > accessLimits.tailBytes)
  return entries.slice(from + 1)
}

/** A line cut by a crash, or by where the tail begins, is left out. */
function entriesOf(text: string): AccessEntry[] {
  return text.split("\n").flatMap((line) => {
    const entry = AccessEntry.safeParse(jsonOf(line))
    return entry.success ? [entry.data] : []
  })
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

async function tailOf(path: string): Promise<string> {
  const file = await open(path, "r").catch((failure: unknown) => {
    if (errnoOf(failure) === "ENOENT") return undefined
    throw failure
  })
  if (!file) return ""
  try {
    const { size } = await file.stat()
    const from = Math.max(0, size - accessLimits.tailBytes)
    const buffer = Buffer.alloc(size - from)
    const { bytesRead } = await file.read(buffer, 0, buffer.length, from)
    return buffer.toString("utf8", 0, bytesRead)
  } finally {
    await file.close()
  }
}
