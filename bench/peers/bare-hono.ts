import { once } from "node:events"
import { writeFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { serve } from "@hono/node-server"
import { Hono } from "hono"

/** As many bytes as a session has. */
const session = { id: "ses_0123456789abcdefghjk", filler: "x".repeat(700) }

// Not a Unix socket as other peers have: what it is measured against is reached over TCP. Its port is in the file instead.
process.stdin.resume().once("end", () => process.exit(0))
process.on("SIGINT", () => undefined)
const app = new Hono()
app.get("/v1/sessions/:id", (c) => c.json(session))
const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" })
await once(server, "listening")
writeFileSync(process.argv[2] ?? "", String((server.address() as AddressInfo).port))
process.stdout.write("listening\n")
