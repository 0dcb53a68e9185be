import { Fault } from "@warren/base/fault.ts"
import { Collected } from "@warren/protocol/collected.ts"
import { isFeed, isStream, type Context, type Contract, type Entry, type Handlers } from "@warren/protocol/contract.ts"
import type { Scoped } from "@warren/protocol/contract.ts"
import type { Conversation } from "@warren/protocol/conversation.ts"
import { AtOnce } from "./at-once.ts"
import type { AuditLog } from "./audit/audit-log.ts"
import { borrowed } from "./borrowed.ts"
import type { Buckets } from "./buckets.ts"
import { visitOf, type Visit } from "./visit.ts"
import type { Watch } from "./watch.ts"

type Handler = (input: unknown, context: Context) => unknown
type AnyConversation = Conversation<unknown, unknown>
type ScopedEntry = Scoped[string]

interface GateParts {
  readonly audit: AuditLog
  readonly buckets: Buckets
  readonly watch: Watch
}

/** Of one user, at this moment. Others are not made to wait for them, and nobody waits so long that they are cut off instead. */
export const gateLimits = {
  /** About as many as they may have sessions. */
  answersMax: 2_000,
  /** Feeds and streams; each has a connection of its own to the runner. */
  opensMax: 4_000,
} as const

/** What every call at the public door passes, whoever answers it: may they, how often, and who writes it down. */
export class Gate {
  readonly #parts: GateParts
  readonly #answered = new AtOnce()
  readonly #open = new AtOnce()

  constructor(parts: GateParts) {
    this.#parts = parts
  }

  /** The same handlers, behind the gate. */
  guard<C extends Scoped & Contract>(contract: C, handlers: Handlers<C>): Handlers<C> {
    const entries = Object.entries(contract as Scoped).map(([name, entry]) => {
      return [name, this.#guarded(name, entry, handlers[name] as Handler)]
    })
    return Object.fromEntries(entries) as Handlers<C>
  }

  /** Takes one from what whoever asks may ask in a minute; also for what is a request, but no call. */
  count(visit: Visit): void {
    const { user, viaId, requestsPerMinute } = visit.who
    this.#spend(visit, `user ${user.id}`, requestsPerMinute.user)
    if (requestsPerMinute.token !== undefined) this.#spend(visit, `token ${viaId}`, requestsPerMinute.token)
  }

  /** Writes down what was refused before it came to a handler. */
  noteRefusal(visit: Visit, action: string, result: string): void {
    if (!visit.isAudited) this.#noteFailure(visit, action, result)
  }

  /** Writes down that somebody came back from their identity provider. */
  async noteSignIn(visit: Visit, result: string): Promise<void> {
    this.#note(visit, "login.oidc", result)
    await this.#parts.audit.written()
  }

  #guarded(name: string, entry: ScopedEntry, handler: Handler): Handler {
    if (isFeed(entry)) return (input, context) => this.#feed(name, entry, input, context, handler)
    if (isStream(entry)) return (input, context) => this.#stream(name, entry, input, context, handler)
    return (input, context) => this.#call(name, entry, input, context, handler)
  }

  async #call(name: string, entry: ScopedEntry, input: unknown, context: Context, handler: Handler): Promise<unknown> {
    const visit = visitOf(context)
    let leave: (() => void) | undefined
    try {
      this.#admit(visit, name, entry, input)
      leave = this.#enterAnswers(visit)
      const out = await handler(input, context)
      this.#noteIfWorth(visit, name, entry, "ok")
      return out
    } catch (thrown) {
      this.#noteIfWorth(visit, name, entry, Fault.from(thrown).code)
      throw thrown
    } finally {
      leave?.()
      // Who changed who may is on disk before anybody hears that it was done.
      if (isAboutAccess(entry)) await this.#parts.audit.written()
    }
  }

  #feed(name: string, entry: ScopedEntry, input: unknown, context: Context, handler: Handler): AsyncIterable<unknown> {
    const { visit, leave } = this.#opened(name, entry, input, context)
    const watched = this.#parts.watch.open("feed", visit.who)
    const signal = AbortSignal.any([context.signal, watched.signal])
    const items = handler(input, { ...context, signal }) as AsyncIterable<unknown>
    return (async function* () {
      try {
        yield* items
      } finally {
        watched.close()
        leave()
      }
    })()
  }

  async #stream(
    name: string,
    entry: ScopedEntry,
    input: unknown,
    context: Context,
    handler: Handler,
  ): Promise<AnyConversation | Collected> {
    const { visit, leave } = this.#opened(name, entry, input, context)
    const watched = this.#parts.watch.open(isOnlyWatched(entry) ? "feed" : "stream", visit.who)
    const over = (): void => {
      watched.close()
      leave()
    }
    const signal = AbortSignal.any([context.signal, watched.signal])
    let answered: (() => void) | undefined
    try {
      answered = this.#enterAnswers(visit)
      const answer = await (handler(input, { ...context, signal }) as Promise<AnyConversation | Collected>)
      if (!(answer instanceof Collected)) return whenOver(answer, over)
      over()
      return answer
    } catch (thrown) {
      over()
      this.#noteIfWorth(visit, name, entry, Fault.from(thrown).code)
      throw thrown
    } finally {
      answered?.()
    }
  }

  #opened(name: string, entry: ScopedEntry, input: unknown, context: Context): { visit: Visit; leave: () => void } {
    const visit = visitOf(context)
    let leave: () => void
    try {
      this.#admit(visit, name, entry, input)
      leave = this.#enter(visit, this.#open, gateLimits.opensMax, "feeds and streams")
    } catch (thrown) {
      this.#noteIfWorth(visit, name, entry, Fault.from(thrown).code)
      throw thrown
    }
    this.#noteIfWorth(visit, name, entry, "ok")
    return { visit, leave }
  }

  #enterAnswers(visit: Visit): () => void {
    return this.#enter(visit, this.#answered, gateLimits.answersMax, "requests")
  }

  /** What to call when it is over; throws when there is no room for one more. */
  #enter(visit: Visit, place: AtOnce, max: number, what: string): () => void {
    // Who has not said who they are is counted where they do.
    if (!visit.principal) return () => undefined
    const leave = place.enter(visit.principal.user.id, max)
    if (leave) return leave
    visit.headers.push(["retry-after", "1"])
    throw new Fault("limit", `${max} ${what} at once are all that may be`, { hint: "wait until some are over" })
  }

  #admit(visit: Visit, name: string, entry: ScopedEntry, input: unknown): void {
    visit.call = name
    visit.subject = subjectOf(input)
    if (entry.scope === "open") return
    const { scopes, limits } = visit.who
    this.count(visit)
    const isBound = limits?.namePrefix !== undefined
    const needed = [entry.scope, ...(isBound ? borrowed(name, input) : [])].find((scope) => !scopes.has(scope))
    if (needed !== undefined) {
      throw new Fault("forbidden", `this needs the scope ${needed}`, { hint: "use a token that has it" })
    }
    if (isWorthNoting(entry)) this.#parts.audit.checkRoom()
  }

  #spend(visit: Visit, key: string, perMinute: number): void {
    const waitS = this.#parts.buckets.take(key, perMinute)
    if (waitS === 0) return
    visit.headers.push(["retry-after", String(waitS)])
    throw new Fault("limit", `more than ${perMinute} requests in a minute`, { hint: `try again in ${waitS} s` })
  }

  #noteIfWorth(visit: Visit, name: string, entry: ScopedEntry, result: string): void {
    if (result !== "ok") this.#noteFailure(visit, name, result)
    else if (isWorthNoting(entry)) this.#note(visit, name, result)
    // Its answer says what became of it, and nobody looks at it again.
    visit.isAudited = true
  }

  #noteFailure(visit: Visit, action: string, result: string): void {
    if (result === "cancelled") return
    // Nonsense from one place must not fill the log with itself.
    const isFlood = !visit.principal && this.#parts.buckets.take(`refused ${visit.address}`, refusalsPerMinute) > 0
    if (!isFlood) this.#note(visit, action, result)
  }

  #note(visit: Visit, action: string, result: string): void {
    visit.isAudited = true
    const { principal, subject, address, requestId: request } = visit
    const who = { user: principal?.user.id ?? "", via: principal?.viaId ?? "" }
    this.#parts.audit.add({ ...who, action, subject, address, request, result })
  }
}

const refusalsPerMinute = 60

/** Everything but reading one's own: that is in the user's own access log. */
function isWorthNoting(entry: Entry): boolean {
  return entry.http?.startsWith("GET ") !== true || entry.scope === "admin"
}

/** It goes on when nobody is with it, so whoever is may be sent away, and comes back. */
function isOnlyWatched(entry: Entry): boolean {
  return isStream(entry) && entry.body === "result" && entry.http?.startsWith("GET ") === true
}

function isAboutAccess({ scope }: ScopedEntry): boolean {
  return scope === "open" || scope === "admin" || scope === "account:write"
}

/** The id of what a request is about. Names are the user's own and stay out. */
function subjectOf(input: unknown): string {
  if (typeof input !== "object" || input === null) return ""
  const { id, session } = input as { id?: unknown; session?: unknown }
  const named = session ?? id
  return typeof named === "string" && /^[a-z]{3}_[0-9a-z]{20}$/.test(named) ? named : ""
}

function whenOver(conversation: AnyConversation, over: () => void): AnyConversation {
  return {
    next: () => conversation.next(),
    send: (message) => conversation.send(message),
    write: (bytes) => conversation.write(bytes),
    [Symbol.asyncDispose]: () => {
      over()
      return conversation[Symbol.asyncDispose]()
    },
  }
}
