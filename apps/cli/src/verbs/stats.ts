import { systemClock } from "@warren/base/clock.ts"
import type { Stats } from "@warren/protocol/user-plane/sessions.ts"
import type { z } from "zod"
import { flag } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { withRunner } from "../desk.ts"
import { allPages } from "../runner/pages.ts"
import type { Runner } from "../runner/runner.ts"
import { table } from "../terminal/table.ts"
import { bytesText } from "../terminal/units.ts"
import { verb } from "../verb.ts"

interface Sample extends z.output<typeof Stats> {
  readonly session: string
  readonly atMs: number
}

interface Row extends Omit<Sample, "atMs"> {
  /** Of one processor, since the sample before; absent at the first. */
  readonly cpuPercent?: number
}

const everyMs = 1_000
const onceMs = 250
const sessionsMax = 500

export const statsVerb = verb({
  name: "stats",
  group: "Sessions",
  doc: "What running sessions use: a table that changes on a terminal, once anywhere else.",
  examples: ["warren stats", "warren stats my-session --once --json"],
  flags: { once: flag.on("Once, also on a terminal.") },
  words: { session: word.optional("SESSION", "Only this one.", { completes: "session" }) },
  run: ({ flags, words }, desk) =>
    withRunner(desk, async (runner) => {
      const isOnce = flags.once || (!desk.terminal.stdout.isTTY && !flags.json)
      let before = await sample(runner, words.session)
      let lines = 0
      do {
        await systemClock.sleep(isOnce ? onceMs : everyMs, desk.signal)
        const now = await sample(runner, words.session)
        const rows = rowsOf(before, now)
        await desk.output.show(rows, () => `${isOnce ? "" : backTo(lines)}${rowsText(rows)}`)
        lines = rows.length + 1
        before = now
      } while (!isOnce)
    }),
})

/** Over what was drawn before. */
function backTo(lines: number): string {
  return lines === 0 ? "" : `\u001b[${lines}A\u001b[J`
}

async function sample(runner: Runner, only: string | undefined): Promise<Sample[]> {
  const names = only === undefined ? await runningNames(runner) : [only]
  const found = await Promise.all(names.map((session) => statsOf(runner, session, only === undefined)))
  return found.filter((each) => each !== undefined)
}

async function runningNames(runner: Runner): Promise<string[]> {
  const running = { state: "running" as const }
  const sessions = await allPages((page) => runner.call("session.list", { ...page, ...running }), sessionsMax)
  return sessions.map(({ name }) => name)
}

async function statsOf(runner: Runner, session: string, mayBeGone: boolean): Promise<Sample | undefined> {
  try {
    return { session, ...(await runner.call("session.stats", { id: session })), atMs: systemClock.monotonic() }
  } catch (thrown) {
    // Between the list and the question a session may have ended.
    if (mayBeGone) return undefined
    throw thrown
  }
}

function rowsOf(before: readonly Sample[], now: readonly Sample[]): Row[] {
  const earlier = new Map(before.map((each) => [each.session, each]))
  return now.map(({ atMs, ...each }) => {
    const last = earlier.get(each.session)
    if (!last || atMs <= last.atMs) return each
    const percent = (each.cpuUs - last.cpuUs) / 1000 / (atMs - last.atMs)
    return { ...each, cpuPercent: Math.max(0, Math.round(percent * 1000) / 10) }
  })
}

function rowsText(rows: readonly Row[]): string {
  return table(
    ["SESSION", "CPU", "MEMORY", "PEAK", "PROCESSES", "DISK", "RECEIVED", "SENT"],
    rows.map((row) => [
      row.session,
      row.cpuPercent === undefined ? "-" : `${row.cpuPercent} %`,
      bytesText(row.memoryBytes),
      bytesText(row.memoryPeakBytes),
      String(row.pids),
      bytesText(row.diskBytes),
      bytesText(row.receivedBytes),
      bytesText(row.sentBytes),
    ]),
  )
}
