import type { IncomingMessage, ServerResponse } from "node:http"
import { Fault } from "@warren/base/fault.ts"
import { TunnelName, tunnelWishes } from "@warren/protocol/user-plane/tunnels.ts"
import { z } from "zod"
import { gatewayLimits } from "./limits.ts"
import { GatewayRefusal } from "./refusal.ts"
import type { Tunnels } from "./tunnels.ts"

/** Programs of a session name its ports; whom to open them to is for its owner to say. */
const Wishes = z.object({ ...tunnelWishes, visibility: z.literal("private").default("private") })

/** `/api/tunnels`, for the session its token is for. */
export async function answerTunnels(
  request: IncomingMessage,
  response: ServerResponse,
  asked: { readonly tunnels: Tunnels; readonly session: string; readonly name: string | undefined },
): Promise<void> {
  const { tunnels, session, name } = asked
  const done = (status: number, body: object): void => {
    const text = JSON.stringify(body)
    response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" }).end(text)
  }
  if (request.method === "GET" && name === undefined)
    return done(200, { tunnels: tunnels.list({ session, limit: gatewayLimits.tunnelsPerSessionMax }).items })
  if (request.method === "POST" && name === undefined)
    return done(201, tunnels.create({ session, ...checked(Wishes, await jsonOf(request)) }))
  if (request.method === "DELETE" && name !== undefined) {
    if (!tunnels.delete({ session, name: checked(TunnelName, name) }))
      throw new GatewayRefusal(404, `this session has no tunnel called ${name}`)
    return done(200, { isDeleted: true })
  }
  throw new GatewayRefusal(405, "tunnels are listed by GET, made by POST and deleted by DELETE with their name")
}

function checked<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw new Fault("invalid", z.prettifyError(result.error))
}

async function jsonOf(request: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > gatewayLimits.apiBytesMax) throw new GatewayRefusal(413, "the request is too long")
    pieces.push(piece)
  }
  try {
    return JSON.parse(Buffer.concat(pieces).toString())
  } catch {
    throw new GatewayRefusal(400, "the request is not JSON")
  }
}
