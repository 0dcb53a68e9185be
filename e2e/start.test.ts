import { execFileSync } from "node:child_process"
import { Validator } from "@seriousme/openapi-schema-validator"
import { describe, expect, test } from "vitest"
import { Warren } from "./warren.ts"

interface Health {
  readonly pid: number
  readonly status: string
}

describe("npm start", () => {
  test("serves the API, as the call it prints shows", async () => {
    await using warren = await Warren.start()
    expect(await (await warren.get("/health", {})).json()).toMatchObject({ status: "ok" })
    const line = warren.said.split("\n").find((text) => text.includes("curl"))
    const printed = execFileSync("sh", ["-c", `${line} -s`], { encoding: "utf8" })
    expect(JSON.parse(printed)).toMatchObject({ status: "ok", degraded: [] })
  })

  test("describes the API in a document that a validator accepts", async () => {
    await using warren = await Warren.start()
    const document = (await (await warren.get("/v1/openapi.json", {})).json()) as Record<string, unknown>
    const result = await new Validator().validate(document)
    expect(result).toMatchObject({ valid: true })
    expect(Object.keys(document["paths"] as object)).toContain("/v1/health")
  })

  test("answers only with the token, only under its own names, only to its own pages", async () => {
    await using warren = await Warren.start()
    const code = async (headers: Record<string, string>): Promise<unknown> => {
      const answer = (await (await warren.get("/v1/health", headers)).json()) as { error?: { code: string } }
      return answer.error?.code
    }
    const authorization = `Bearer ${await warren.token()}`
    expect(await code({})).toBe("unauthenticated")
    expect(await code({ authorization: "Bearer wrong" })).toBe("unauthenticated")
    expect(await code({ authorization: authorization.slice(7) })).toBe("unauthenticated")
    expect(await code({ authorization, origin: "http://evil.example" })).toBe("forbidden")
    expect(await code({ authorization })).toBeUndefined()
    const rebound = execFileSync("curl", ["-s", "-H", "Host: evil.example", `http://127.0.0.1:${warren.port}/health`], {
      encoding: "utf8",
    })
    expect(JSON.parse(rebound)).toMatchObject({ error: { code: "forbidden" } })
  })

  test("two run side by side, and the data of one outlives it", async () => {
    await using first = await Warren.start()
    await using second = await Warren.start()
    const [one, two] = await Promise.all([first.get("/v1/health"), second.get("/v1/health")])
    expect(((await one.json()) as Health).pid).not.toBe(((await two.json()) as Health).pid)
    const token = await first.token()
    expect(await first.stop()).toBe(0)
    await using again = await Warren.start(first.home)
    expect(await again.token()).toBe(token)
  })

  test("refuses to run twice on the same data", async () => {
    await using warren = await Warren.start()
    await expect(Warren.start(warren.home)).rejects.toThrow(/already running/)
    expect((await warren.get("/v1/health")).status).toBe(200)
  })

  test("ends altogether when a part of it is killed, and says so", async () => {
    await using warren = await Warren.start()
    const { pid } = (await (await warren.get("/v1/health")).json()) as Health
    process.kill(pid, "SIGKILL")
    expect(await warren.ended()).toBe(1)
    expect(warren.said).toMatch(/runner ended unexpectedly/)
    // The killed runner's lock and socket are no obstacle.
    await using again = await Warren.start(warren.home)
    expect((await again.get("/v1/health")).status).toBe(200)
  })

  test("lets the log be followed from where a reader was", async () => {
    await using warren = await Warren.start()
    const seen = await firstEvent(warren, {})
    expect(seen.event).toBe("sessions.found")
    const later = { authorization: `Bearer ${await warren.token()}`, "last-event-id": String(seen.id - 1) }
    expect((await firstEvent(warren, later)).id).toBe(seen.id)
    const { entries } = (await (await warren.get("/v1/logs?limit=1")).json()) as { entries: { seq: number }[] }
    expect(entries).toHaveLength(1)
  })
})

async function firstEvent(warren: Warren, headers: Record<string, string>): Promise<{ id: number; event: string }> {
  const controller = new AbortController()
  const given = Object.keys(headers).length > 0 ? headers : undefined
  const answer = await warren.get("/v1/logs/follow", given, controller.signal)
  let text = ""
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk as Uint8Array).toString()
    if (text.includes("\n\n")) break
  }
  controller.abort()
  const field = (name: string): string =>
    text
      .split("\n")
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2) ?? ""
  return { id: Number(field("id")), event: (JSON.parse(field("data")) as { event: string }).event }
}
