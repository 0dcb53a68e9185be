import { sign, verify, type KeyObject } from "node:crypto"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import { keepNewest } from "@warren/base/keep-newest.ts"
import { z } from "zod"

/**
 * What the control plane says, signed, with each thing it asks of a runner: for whom, and exactly what. A runner does
 * nothing for it otherwise.
 */
export const Statement = z.object({
  user: z.string().min(1).max(64),
  call: z.string().min(1).max(128),
  session: z.string().max(256).optional(),
  scope: z.string().max(64),
  /** The token or sign-in that was used: the control plane's name for it, nothing to sign in with. */
  token: z.string().max(64).optional(),
  limits: z
    .object({
      /** Sessions the user may have that are not over. */
      sessionsMax: z.int().min(0).optional(),
      /** Only sessions whose names begin so are there for this token, and only so many of them. */
      namePrefix: z.string().max(63).optional(),
      prefixSessionsMax: z.int().min(0).optional(),
    })
    .optional(),
  expiresAt: z.int(),
  id: z.string().max(64),
})
export type Statement = z.output<typeof Statement>
export type StatementFacts = Omit<Statement, "expiresAt" | "id">

export const statementLimits = {
  /** No statement is good for longer. */
  lifeMs: 60_000,
  /** How far two clocks may be apart. */
  skewMs: 5_000,
  charsMax: 4_096,
  /** Statements kept because they will be asked for again. */
  keptMax: 4_096,
} as const

/** Keeps a signature for this from ever being one for something else. */
const purpose = "warren-statement-1\n"

/** Signs statements. One is used again while most of its life is left: a signature costs as much as a whole request. */
export class StatementSigner {
  readonly #key: KeyObject
  readonly #now: () => number
  readonly #kept = new Map<string, { readonly text: string; readonly staleAt: number }>()

  constructor(key: KeyObject, now: () => number) {
    this.#key = key
    this.#now = now
  }

  sign(facts: StatementFacts): string {
    const key = JSON.stringify(facts)
    const kept = this.#kept.get(key)
    // A clock that was set back makes what is kept look too young; then it is not used.
    const life = kept ? kept.staleAt - this.#now() : 0
    if (kept && life > 0 && life <= statementLimits.lifeMs / 2) return kept.text
    const text = this.#make(facts)
    keepNewest(this.#kept, statementLimits.keptMax, key, { text, staleAt: this.#now() + statementLimits.lifeMs / 2 })
    return text
  }

  #make(facts: StatementFacts): string {
    const statement: Statement = { ...facts, expiresAt: this.#now() + statementLimits.lifeMs, id: newId("stm") }
    const payload = Buffer.from(JSON.stringify(statement)).toString("base64url")
    return `${payload}.${sign(null, Buffer.from(purpose + payload), this.#key).toString("base64url")}`
  }
}

interface VerifierOptions {
  /** Whose runner this is. */
  readonly user: string
  readonly now: () => number
  /** The control plane's public keys; asked for again when a signature fits none, because it may have a new one. */
  keys(isNewWanted: boolean): readonly KeyObject[]
}

interface AskedWith {
  readonly call: string
  readonly in: unknown
  readonly scope: string | undefined
  readonly statement: string | undefined
}

/**
 * Checks statements. Within its life one may be used again, for the same call on the same session by the same user: whoever
 * could replay it on this socket is the one who could sign another. So nothing has to be remembered to be safe, and what
 * was verified is remembered only to be fast.
 */
export class StatementVerifier {
  readonly #options: VerifierOptions
  readonly #verified = new Map<string, Statement>()

  constructor(options: VerifierOptions) {
    this.#options = options
  }

  /** The statement, if it is one for exactly this. */
  check(asked: AskedWith): Statement {
    if (asked.statement === undefined) throw refused("a signed statement is missing")
    const statement = this.#verified.get(asked.statement) ?? this.#verify(asked.statement)
    const wrong = mismatch(statement, asked, this.#options)
    if (wrong !== undefined) throw refused(wrong)
    return statement
  }

  /** Nothing that was verified counts any more: the key has changed. */
  forget(): void {
    this.#verified.clear()
  }

  #verify(text: string): Statement {
    const [payload = "", signature = "", ...rest] = text.split(".")
    if (rest.length > 0 || text.length > statementLimits.charsMax) throw refused("the statement is not one")
    const isSigned = [false, true].some((isNewWanted) =>
      this.#options.keys(isNewWanted).some((key) => isSignature(key, payload, signature)),
    )
    if (!isSigned) throw refused("the statement is not signed by the control plane")
    const statement = Statement.safeParse(jsonOf(payload))
    if (!statement.success) throw refused("the statement is not one")
    keepNewest(this.#verified, statementLimits.keptMax, text, statement.data)
    return statement.data
  }
}

function isSignature(key: KeyObject, payload: string, signature: string): boolean {
  return verify(null, Buffer.from(purpose + payload), key, Buffer.from(signature, "base64url"))
}

/** What keeps a statement, properly signed, from being one for this request. */
function mismatch(statement: Statement, asked: AskedWith, options: VerifierOptions): string | undefined {
  const left = statement.expiresAt - options.now()
  if (left < -statementLimits.skewMs) return "the statement has expired"
  if (left > statementLimits.lifeMs + statementLimits.skewMs) return "the statement is good for too long"
  if (statement.user !== options.user) return "the statement is for another user"
  if (statement.call !== asked.call) return "the statement is for another call"
  if (statement.session !== sessionOf(asked.call, asked.in)) return "the statement is for another session"
  if (statement.scope !== asked.scope) return "the statement is for another scope"
  return undefined
}

/** The session a request is about, as it was named. */
export function sessionOf(call: string, input: unknown): string | undefined {
  if (typeof input !== "object" || input === null) return undefined
  const { session, id } = input as { session?: unknown; id?: unknown }
  const named = session ?? (call.startsWith("session.") ? id : undefined)
  return typeof named === "string" ? named : undefined
}

function refused(reason: string): Fault {
  return new Fault("forbidden", reason, {
    hint: "only the control plane, for a user who is signed in, is answered here",
  })
}

function jsonOf(payload: string): unknown {
  try {
    return JSON.parse(Buffer.from(payload, "base64url").toString())
  } catch {
    return undefined
  }
}
