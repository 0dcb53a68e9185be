import type { AgentEvent } from "@warren/agents/adapter.ts"
import type { Clock } from "@warren/base/clock.ts"

type Text = Extract<AgentEvent, { type: "text" }>

/** Nobody reads faster than this, and every piece is stored by itself. */
export const gatherMs = 20
const gatherCharsMax = 8 * 1024

/**
 * The same events, but text that follows text at once is one event. The first of a run is passed on as it comes; what follows waits
 * at most `gatherMs`, and never behind anything else that happens.
 */
export async function* gathered(
  events: AsyncIterable<AgentEvent>,
  clock: Clock,
): AsyncGenerator<AgentEvent, void, void> {
  const source = events[Symbol.asyncIterator]()
  let held: Text | undefined
  let due: Promise<typeof late> | undefined
  let next = source.next()
  try {
    for (;;) {
      const come = held && due ? await Promise.race([next, due]) : await next
      if (come === late) {
        if (held) yield held
        // The window goes on while text keeps coming, so that a long answer is a piece per window.
        due = held && rest(clock)
        held = undefined
        continue
      }
      const event = come.done ? undefined : come.value
      const joined = held && event ? join(held, event) : undefined
      if (joined) held = joined
      else {
        if (held) yield held
        held = undefined
        if (event?.type === "text" && due) held = event
        else if (event) yield event
        due = event?.type === "text" ? (due ?? rest(clock)) : undefined
      }
      if (come.done) return
      next = source.next()
    }
  } catch (failure) {
    // What it had said before it failed.
    if (held) yield held
    throw failure
  } finally {
    await source.return?.()
  }
}

const late = Symbol("late")

async function rest(clock: Clock): Promise<typeof late> {
  await clock.sleep(gatherMs)
  return late
}

function join(before: Text, event: AgentEvent): Text | undefined {
  if (event.type !== "text" || event.part !== before.part) return undefined
  if (before.text.length + event.text.length > gatherCharsMax) return undefined
  return { ...before, text: before.text + event.text }
}
