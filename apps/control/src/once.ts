import { createHash } from "node:crypto"
import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import { isCall, type Context, type Contract, type Handlers } from "@warren/protocol/contract.ts"
import type { Seal } from "./login/seal.ts"
import type { Made, MadeKey } from "./store/made.ts"
import { visitOf } from "./visit.ts"

export const onceLimits = {
  /** How long an answer is given again. */
  keptMs: 24 * 3600_000,
  /** One that was begun so long ago has died: whoever asks next makes it. */
  makingMs: 60_000,
} as const

type Handler = (input: unknown, context: Context) => Promise<unknown>

interface OnceParts {
  readonly made: Made
  /** What is told once may not lie about for everybody who reads the database. */
  readonly seal: Seal
  readonly clock: Clock
}

/** The same handlers; what makes something makes it once for each key of whoever asks. */
export function onceEach<C extends Contract>(contract: C, handlers: Handlers<C>, parts: OnceParts): Handlers<C> {
  const entries = Object.entries(contract).map(([name, entry]) => {
    const handler = handlers[name] as Handler
    if (!isCall(entry) || !entry.makes) return [name, handler]
    return [name, (input: unknown, context: Context) => once(name, input, context, handler, parts)]
  })
  return Object.fromEntries(entries) as Handlers<C>
}

async function once(
  name: string,
  input: unknown,
  context: Context,
  handler: Handler,
  { made, seal, clock }: OnceParts,
): Promise<unknown> {
  if (context.key === undefined) return handler(input, context)
  const mine: MadeKey = { userId: visitOf(context).who.user.id, key: hashOf(context.key) }
  const asked = hashOf(JSON.stringify([name, input]))
  const now = clock.now()
  if (!(await made.claim(mine, asked, { now, before: now - onceLimits.keptMs }))) {
    const before = await made.get(mine)
    if (before && before.asked !== asked) throw conflict("this key was used for another request")
    const answer = before?.answer ? seal.open(before.answer) : undefined
    if (answer !== undefined) return answer
    if (before && before.at > now - onceLimits.makingMs) throw conflict("the same request is being worked on")
    await made.forget(mine)
    return once(name, input, context, handler, { made, seal, clock })
  }
  try {
    const answer = await handler(input, context)
    failpoint("request/answered")
    await made.keep(mine, seal.close(answer as object))
    failpoint("request/kept")
    return answer
  } catch (thrown) {
    await made.forget(mine)
    throw thrown
  }
}

function conflict(message: string): Fault {
  return new Fault("conflict", message, { hint: "use a new Idempotency-Key, or try again in a moment" })
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex")
}
