import { readFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { ManyUsers, pidsOf } from "./machine.ts"

/** Between two requests: each has a connection of its own. */
const askMs = 10

describe.skipIf(process.getuid?.() !== 0)("a control plane that its launcher replaces", { timeout: 180_000 }, () => {
  let machine: ManyUsers
  beforeAll(async () => {
    machine = await ManyUsers.open()
  }, 180_000)
  afterAll(() => machine?.[Symbol.asyncDispose](), 120_000)

  const control = (): number | undefined =>
    pidsOf(machine.control).find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("control.js"))

  /** What became of requests that were made, one after the other, while `meanwhile` went on. */
  async function outcomes(meanwhile: () => Promise<void>): Promise<Record<string, number>> {
    const counted: Record<string, number> = {}
    let isOver = false
    const over = meanwhile().finally(() => (isOver = true))
    while (!isOver) {
      const outcome = await fetch(`http://127.0.0.1:${machine.port}/health`, { headers: { connection: "close" } }).then(
        ({ status }) => String(status),
        (thrown: Error) => (thrown.cause as NodeJS.ErrnoException | undefined)?.code ?? thrown.message,
      )
      counted[outcome] = (counted[outcome] ?? 0) + 1
      await pause(askMs)
    }
    await over
    return counted
  }

  async function replaced(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const before = control()
    process.kill(before ?? 0, signal)
    const answers = async (): Promise<boolean> => (await machine.ask("/health", {})).status === 200
    await expect
      .poll(async () => control() !== undefined && control() !== before && (await answers()), { timeout: 60_000 })
      .toBe(true)
  }

  test("told to stop, loses no request: who comes meanwhile waits for the next", async () => {
    const { 200: ok = 0, 503: stopping = 0, ...lost } = await outcomes(() => replaced("SIGTERM"))
    expect(ok + stopping).toBeGreaterThan(0)
    expect(lost).toEqual({})
  })

  test("killed, refuses nobody: only what it was about to answer is lost", async () => {
    const { 200: ok = 0, ...lost } = await outcomes(() => replaced("SIGKILL"))
    expect(ok).toBeGreaterThan(0)
    expect(lost).not.toHaveProperty("ECONNREFUSED")
    expect(Object.values(lost).reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(1)
  })
})
