import type { Socket } from "node:net"
import { localName } from "./asked.ts"
import { handshakeRecord, serverNameOf } from "./client-hello.ts"
import type { Client, Fixed } from "./client.ts"
import { Denied } from "./denied.ts"
import { canonicalHost, type Target } from "./host.ts"
import type { TunnelReply } from "./http-front.ts"
import type { EgressLimits } from "./limits.ts"
import { readHead } from "./read-head.ts"
import type { Routes } from "./routes.ts"
import { splice } from "./splice.ts"

interface TunnelOptions {
  readonly routes: Routes
  readonly limits: EgressLimits
  readonly hasLocal: boolean
  /** Goes on as HTTP, to this one host. */
  http(client: Client, fixed: Fixed): void
}

const tlsPort = 443
/** A fatal alert, `unrecognized_name`: what a client shows when a server does not have the name it asked for. */
const unknownName = Buffer.from([0x15, 3, 1, 0, 2, 2, 112])

/**
 * Carries a tunnel. What goes through must be TLS with the name that was asked for, or HTTP, which is then looked at request by
 * request, unless the policy lists the host as plain TCP. Throws what the client has been told.
 */
export async function tunnel(
  client: Client,
  target: Target,
  reply: TunnelReply,
  options: TunnelOptions,
): Promise<void> {
  const { routes, limits } = options
  if (options.hasLocal && target.name === localName && target.port === 80) {
    reply.accept()
    return options.http(client, { target, spare: undefined })
  }
  const route = await routes.open(target, client.signal)
  try {
    reply.accept()
    if (routes.policy.isRaw(target)) return await splice(client.socket, route)
    client.expect(limits.handshakeMs)
    if ((await protocolOf(client.socket, target)) === "http") return options.http(client, { target, spare: route })
    await checkServerName(client.socket, target, limits.helloBytesMax)
    client.relax()
    await splice(client.socket, route)
  } catch (thrown) {
    route.destroy()
    throw thrown
  }
}

async function protocolOf(socket: Socket, target: Target): Promise<"tls" | "http"> {
  const first = await readHead(socket, 1, (bytes) => ({ value: bytes[0] ?? 0, used: 0 }))
  if (first === handshakeRecord) return "tls"
  const isLetter = first >= 0x41 && first <= 0x5a
  if (isLetter && target.port !== tlsPort) return "http"
  throw new Denied("unknown-protocol", `what goes to ${target.name} is not ${isLetter ? "TLS" : "TLS or HTTP"}`)
}

async function checkServerName(socket: Socket, target: Target, bytesMax: number): Promise<void> {
  const hello = await readHead(socket, bytesMax, (bytes) => {
    const value = serverNameOf(bytes)
    return value && { value, used: 0 }
  })
  if (hello.name === undefined) {
    // An address has no name to send.
    if (target.isAddress) return
    throw new Denied("sni-missing", `TLS to ${target.name} without a server name`)
  }
  const { name } = canonicalHost(hello.name)
  if (name === target.name) return
  socket.write(unknownName)
  throw new Denied("sni-mismatch", `${target.name} was asked for, and TLS asked for ${name}`)
}
