import type { IncomingMessage } from "node:http"
import type { Clock } from "@warren/base/clock.ts"
import type { Log } from "@warren/base/log.ts"
import type { Context as HonoContext, Hono } from "hono"
import { AccessTokens } from "./access-token.ts"
import { apiDoor } from "./api/door.ts"
import { Interpreter } from "./interpreter/interpreter.ts"
import { Known } from "./known.ts"
import type { Plane } from "./plane.ts"
import { Ports } from "./ports/ports.ts"
import { Sandboxes } from "./sandboxes.ts"
import { Builds } from "./templates/builds.ts"
import { Traffic } from "./traffic.ts"

export interface E2bParts {
  /** What its tokens are made from: the same for as long as this Warren is. */
  readonly secret: Buffer
  readonly domain: string
  readonly clock: Clock
  readonly log: Log
  asking(c: HonoContext): Promise<{ readonly plane: Plane; readonly key: string }>
  within(request: Request | IncomingMessage, key: string): Promise<Plane | undefined>
}

/** Everything clients of E2B talk to. */
export interface E2bDoor extends Disposable {
  readonly api: Hono
  readonly traffic: Traffic
}

export function e2bDoor(parts: E2bParts): E2bDoor {
  const tokens = new AccessTokens(parts.secret)
  const known = new Known()
  const sandboxes = new Sandboxes(parts.clock)
  const shared = { ...parts, tokens, known, sandboxes }
  const ports = new Ports({ tokens, sandboxes, interpreter: new Interpreter(parts.clock) })
  const builds = new Builds(parts.clock, parts.log)
  const traffic = new Traffic({ ...shared, ports })
  return { api: apiDoor({ ...shared, builds }), traffic, [Symbol.dispose]: () => builds[Symbol.dispose]() }
}
