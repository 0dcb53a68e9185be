import { afterAll, expect, test } from "vitest"
import { ApiSystem } from "./system.ts"

const system = await ApiSystem.start()
afterAll(() => system[Symbol.asyncDispose]())

/** What an answer in events says until it is over. */
async function until(response: Response, what: RegExp): Promise<string> {
  let said = ""
  const decoder = new TextDecoder()
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
    said += decoder.decode(piece, { stream: true })
    if (what.test(said)) return said
  }
  return said
}

test(
  "a runner that hangs is told of, to those who ask and to those who follow; it comes back",
  { timeout: 120_000 },
  async () => {
    await using session = await system.warren.sessions.create({ network: { mode: "none" } })
    const feeds = await Promise.all(["/v1/sessions/events", "/v1/logs/follow"].map((path) => system.fetch(path)))
    process.kill(system.pids.runner, "SIGSTOP")
    try {
      // Nobody asks for anything: a quiet feed alone finds out.
      for (const feed of feeds) expect(await until(feed, /event: fault/)).toMatch(/"code":"unavailable".*try again/)
      for (const path of ["/v1/health", `/v1/sessions/${session.id}`]) {
        const refused = await system.fetch(path)
        expect([refused.status, await refused.json()]).toMatchObject([
          503,
          { error: { code: "unavailable", hint: expect.stringContaining("try again") as string } },
        ])
      }
    } finally {
      process.kill(system.pids.runner, "SIGCONT")
    }
    await expect.poll(async () => (await system.fetch("/v1/health")).status, { timeout: 30_000 }).toBe(200)
    const again = await system.fetch("/v1/sessions/events")
    expect(await until(again, /event: item/)).toContain(session.id)
  },
)
