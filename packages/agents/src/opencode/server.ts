import { randomBytes } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { keepNewest } from "@warren/base/keep-newest.ts"
import type { z } from "zod"
import type { Launch, ProcessGroup } from "../process-group.ts"
import type { ProcessGroups } from "../process-groups.ts"
import { textLines } from "../text-lines.ts"
import { eventOf, streamedEvents, type OpenCodeEvent } from "./events.ts"
import { Inbox } from "../inbox.ts"

const startMs = 90_000
const requestMs = 30_000
const stopGraceMs = 2_000
const lineCharsMax = 64 * 1024
const complaintCharsMax = 4_096
/** A turn that nobody reads holds OpenCode back at this many events. */
const inboxEventsMax = 1_000
const reconnectMs = 100
const helpersMax = 1_000

/** What a turn is told: an event, that some may have been missed, or to look at itself again. */
export type Told = OpenCodeEvent | { readonly type: "gap" } | { readonly type: "wake" }

interface Ask {
  readonly method: "GET" | "POST" | "DELETE"
  readonly path: string
  readonly body?: object | undefined
  readonly signal?: AbortSignal | undefined
}

/** A running `opencode serve`: asked by HTTP, heard by its stream of events. */
export class OpenCodeServer implements AsyncDisposable {
  /** Resolves with how, when it has ended. */
  readonly ended: Promise<string>
  readonly #group: ProcessGroup
  readonly #url: string
  readonly #authorization: string
  readonly #over = new AbortController()
  readonly #inboxes = new Map<string, Inbox<Told>>()
  /** A helper that OpenCode starts talks in a session of its own. */
  readonly #parents = new Map<string, string>()

  private constructor(group: ProcessGroup, url: string, password: string, complaint: { readonly text: string }) {
    this.#group = group
    this.#url = url
    this.#authorization = `Basic ${Buffer.from(`opencode:${password}`).toString("base64")}`
    this.ended = group.exited.then(({ code, signal }) => {
      this.#over.abort(new Fault("unavailable", "OpenCode has ended"))
      for (const inbox of this.#inboxes.values()) inbox.close()
      return `OpenCode ${signal ? `was ended by ${signal}` : `ended with ${code}`}${told(complaint.text)}`
    })
  }

  /** It is asked nothing before it says that it listens: a request that comes too early hangs for ever. */
  static async start(groups: ProcessGroups, launch: Launch, signal: AbortSignal): Promise<OpenCodeServer> {
    const password = randomBytes(24).toString("base64url")
    const group = await groups.start({
      ...launch,
      args: ["serve", "--hostname", "127.0.0.1", "--port", "0"],
      env: { ...launch.env, OPENCODE_SERVER_PASSWORD: password },
    })
    const late = AbortSignal.any([signal, AbortSignal.timeout(startMs)])
    const abort = (): void => void group.stop(0)
    late.addEventListener("abort", abort, { once: true })
    if (late.aborted) abort()
    try {
      const server = await OpenCodeServer.#listening(group, password)
      const events = await server.#connect()
      void server.#keepHearing(events)
      return server
    } catch (failure) {
      await group.stop(0)
      signal.throwIfAborted()
      throw late.aborted ? new Fault("timeout", "OpenCode did not start in time") : failure
    } finally {
      late.removeEventListener("abort", abort)
    }
  }

  static async #listening(group: ProcessGroup, password: string): Promise<OpenCodeServer> {
    const complaint = { text: "" }
    void keepTail(group, complaint)
    const lines = textLines(group.stdout, lineCharsMax)
    for (;;) {
      const { value, done } = await lines.next()
      if (done) break
      const [, url] = /listening on (http:\/\/\S+)/.exec(value) ?? []
      if (url === undefined) continue
      void drain(lines)
      return new OpenCodeServer(group, url, password, complaint)
    }
    const { code, signal } = await group.exited
    const how = signal ? `was ended by ${signal}` : `ended with ${code}`
    throw new Fault("unavailable", `OpenCode ${how} as it started${told(complaint.text)}`)
  }

  /** Answers with what was asked for, checked; a refusal is a `Fault`. */
  async ask<S extends z.ZodType>(ask: Ask, schema: S): Promise<z.output<S>> {
    const parsed = schema.safeParse(await this.#fetch(ask))
    if (!parsed.success) throw new Fault("internal", `OpenCode answered ${ask.path} with something else`)
    return parsed.data
  }

  async tell(ask: Ask): Promise<void> {
    await this.#fetch(ask)
  }

  /** Everything that happens in a session from now on. One at a time. */
  listen(session: string): Inbox<Told> & Disposable {
    const inbox = new Inbox<Told>(inboxEventsMax)
    this.#inboxes.set(session, inbox)
    if (this.#over.signal.aborted) inbox.close()
    return Object.assign(inbox, {
      [Symbol.dispose]: () => {
        inbox.close()
        if (this.#inboxes.get(session) === inbox) this.#inboxes.delete(session)
      },
    })
  }

  /** It, and everything that its tools have started in its group. */
  async kill(): Promise<void> {
    await this.#group.stop(0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#group.stop(stopGraceMs)
  }

  async #fetch({ method, path, body, signal }: Ask): Promise<unknown> {
    const signals = [this.#over.signal, AbortSignal.timeout(requestMs), ...(signal ? [signal] : [])]
    try {
      const response = await fetch(this.#url + path, {
        method,
        headers: { authorization: this.#authorization, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.any(signals),
      })
      const text = await response.text()
      if (!response.ok)
        throw new Fault(response.status === 404 ? "not_found" : "unavailable", `OpenCode answered ${response.status}`)
      return text === "" ? undefined : JSON.parse(text)
    } catch (failure) {
      signal?.throwIfAborted()
      if (failure instanceof Fault) throw failure
      throw new Fault("unavailable", `OpenCode does not answer: ${messageOf(failure)}`, { cause: failure })
    }
  }

  /** Until it ends. */
  async #keepHearing(first: AsyncIterable<Uint8Array>): Promise<void> {
    for (let body: AsyncIterable<Uint8Array> | undefined = first; !this.#over.signal.aborted;) {
      if (body) await this.#pump(body)
      if (this.#over.signal.aborted) return
      await sleep(reconnectMs)
      body = await this.#connect().catch(() => undefined)
      if (body) for (const inbox of this.#inboxes.values()) await inbox.push({ type: "gap" })
    }
  }

  async #connect(): Promise<AsyncIterable<Uint8Array>> {
    const headers = { authorization: this.#authorization }
    const { body } = await fetch(`${this.#url}/event`, { headers, signal: this.#over.signal })
    if (!body) throw new Fault("unavailable", "OpenCode tells no events")
    return body
  }

  async #pump(body: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const text of streamedEvents(body)) {
        const event = eventOf(text)
        if (event) await this.#deliver(event)
      }
    } catch {
      // Cut: it is connected again, and whoever listens is told that something may be missing.
    }
  }

  async #deliver(event: OpenCodeEvent): Promise<void> {
    if (event.type === "server.connected") return
    if (event.type === "file.edited") {
      for (const inbox of this.#inboxes.values()) await inbox.push(event)
      return
    }
    if (event.type === "session.created" || event.type === "session.updated") {
      const { id, parentID } = event.properties.info
      if (parentID !== undefined) this.#adopt(id, parentID)
      return this.#inboxes.get(id)?.push(event)
    }
    await this.#inboxes.get(this.#rootOf(event.properties.sessionID ?? ""))?.push(event)
  }

  #adopt(id: string, parent: string): void {
    keepNewest(this.#parents, helpersMax, id, parent)
  }

  #rootOf(session: string): string {
    const parent = this.#parents.get(session)
    return parent === undefined ? session : this.#rootOf(parent)
  }
}

function told(complaint: string): string {
  return complaint.trim() === "" ? "" : `: ${complaint.trim()}`
}

async function keepTail({ stderr }: ProcessGroup, kept: { text: string }): Promise<void> {
  for await (const line of textLines(stderr, complaintCharsMax))
    kept.text = (kept.text + line).slice(-complaintCharsMax)
}

async function drain(lines: AsyncGenerator<string, void, void>): Promise<void> {
  for await (const _ of lines);
}
