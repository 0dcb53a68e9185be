import { EventEmitter, once } from "node:events"
import { request as httpRequest, type IncomingMessage } from "node:http"
import { eventually } from "@warren/base/testing/eventually.ts"
import { describe, expect, test } from "vitest"
import { Loopback } from "../egress/testing/egress-system.ts"
import type { GrantedLease } from "./lease.ts"
import { BrokerSystem } from "./testing/broker-system.ts"

/** A stream that is under way through the broker, and how it ends. */
async function stream(port: number, token: string): Promise<{ incoming: IncomingMessage; ended: Promise<string> }> {
  const sent = httpRequest({ host: "127.0.0.1", port, path: "/anthropic/v1/messages", method: "POST" })
  sent.setHeader("x-api-key", token)
  sent.on("error", () => undefined).end("{}")
  const [incoming] = (await once(sent, "response")) as [IncomingMessage]
  await once(incoming, "data")
  const ended = once(incoming, "end").then(
    () => "whole",
    () => "cut",
  )
  return { incoming, ended }
}

/** An LLM that begins an answer and goes on only when told. */
function slowLlm(more: EventEmitter): Promise<Loopback> {
  return Loopback.http((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).write("data: 1\n\n")
    more.once("more", () => response.end("data: 2\n\n"))
  })
}

describe("a stream on a lease", () => {
  const ends: [string, (system: BrokerSystem, lease: GrantedLease) => unknown, string][] = [
    ["revoked", ({ leases }, { id }) => leases.revoke(id), "revoked"],
    ["revoked with its session", ({ leases }) => leases.revokeSession("ses_one"), "revoked"],
    ["expired", ({ clock }) => clock.advance(1_000), "expired"],
  ]
  test.each(ends)("is cut when the lease is %s; others go on", async (_, end, refusal) => {
    const more = new EventEmitter()
    await using llm = await slowLlm(more)
    await using system = await BrokerSystem.start({ upstreams: { anthropic: `http://127.0.0.1:${llm.port}` } })
    const grant = (session: string, ttlMs: number): GrantedLease =>
      system.leases.grant({ session, scope: "llm:anthropic", destination: `127.0.0.1:${llm.port}`, ttlMs })
    const [mine, other] = [grant("ses_one", 1_000), grant("ses_two", 3_600_000)]
    const cut = await stream(await system.sandbox("ses_one"), mine.token)
    const left = await stream(await system.sandbox("ses_two"), other.token)
    await end(system, mine)
    expect(await cut.ended).toBe("cut")
    await eventually(() => llm.open === 1)
    more.emit("more")
    expect(await left.ended).toBe("whole")
    await eventually(() => system.lines.length === 2)
    expect(JSON.parse(system.lines[0] ?? "")).toMatchObject({ event: "broker.refuse", lease: mine.id, refusal })
    expect(JSON.parse(system.lines[1] ?? "")).toMatchObject({ event: "broker.use", lease: other.id })
    // Nobody waits for the end of a lease that nothing runs on.
    expect(system.clock.sleeping).toBe(0)
  })

  test("that has not begun is refused, when the lease ends while its key is fetched", async () => {
    await using llm = await Loopback.http((_, response) => void response.end("{}"))
    const system = await BrokerSystem.start({
      upstreams: { anthropic: `http://127.0.0.1:${llm.port}` },
      keys: () => {
        system.leases.revokeSession("ses_one")
        return Promise.resolve({ value: "sk-real" })
      },
    })
    await using _ = system
    const destination = `127.0.0.1:${llm.port}`
    const { token } = system.leases.grant({ session: "ses_one", scope: "llm:anthropic", destination, ttlMs: 1_000 })
    const answer = await fetch(`http://127.0.0.1:${await system.sandbox("ses_one")}/anthropic/v1/messages`, {
      headers: { "x-api-key": token },
    })
    expect(answer.status).toBe(401)
    expect(llm.accepted).toBe(0)
  })
})
