import type { Writable } from "node:stream"

const events = ["drain", "error", "close"] as const

/**
 * Resolves when a stream takes more, or never will. Nothing of the wait stays with the stream: a race of two `once` leaves the loser
 * there, and what lives for days is waited for a million times.
 */
export function drained(stream: Writable): Promise<void> {
  if (stream.destroyed || !stream.writableNeedDrain) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      for (const event of events) stream.off(event, done)
      resolve()
    }
    for (const event of events) stream.on(event, done)
  })
}
