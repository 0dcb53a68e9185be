import { afterAll, expect, test } from "vitest"
import { ApiSystem } from "./system.ts"

const system = await ApiSystem.start()
afterAll(() => system[Symbol.asyncDispose]())

interface Entry {
  readonly call: string
  readonly trace?: string
}

test("a caller's trace reaches the runner, by call and by stream; what is none does not", async () => {
  const trace = "0af7651916cd43dd8448eb211c80319c"
  const traced = { traceparent: `00-${trace}-b7ad6b7169203331-01` }
  await using session = await system.warren.sessions.create({ network: { mode: "none" } })
  await system.fetch(`/v1/sessions/${session.id}`, { headers: traced })
  await system.fetch(`/v1/sessions/${session.id}/files/content?path=/etc/hostname`, { headers: traced })
  for (const traceparent of ["nonsense", `00-${"0".repeat(32)}-b7ad6b7169203331-01`, "x".repeat(500)]) {
    expect((await system.fetch("/v1/health", { headers: { traceparent } })).status).toBe(200)
  }
  const entries = async (call: string): Promise<Entry[]> => {
    const told = (await (await system.fetch("/v1/access")).json()) as { entries: Entry[] }
    return told.entries.filter((entry) => entry.call === call)
  }
  await expect.poll(async () => (await entries("session.get")).at(-1)?.trace, { timeout: 20_000 }).toBe(trace)
  await expect.poll(async () => (await entries("file.read")).at(-1)?.trace, { timeout: 20_000 }).toBe(trace)
  await expect.poll(async () => (await entries("health.check")).length, { timeout: 20_000 }).toBeGreaterThanOrEqual(3)
  expect((await entries("health.check")).every((entry) => entry.trace === undefined)).toBe(true)
})
