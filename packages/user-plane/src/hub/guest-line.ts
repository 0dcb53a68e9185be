import type { Duplex } from "node:stream"
import type { Clock } from "@warren/base/clock.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { backoffMs } from "@warren/base/retry.ts"
import { hubLimits, Resume, type Control } from "@warren/protocol/hub/frames.ts"
import { HubSocket } from "@warren/protocol/hub/hub-socket.ts"
import { HubUp, type HubDown } from "@warren/protocol/hub/messages.ts"
import { ReliableLink } from "@warren/protocol/hub/reliable-link.ts"
import type { TurnCause } from "@warren/protocol/hub/words.ts"
import type { Guest } from "./guest.ts"
import type { HubStore } from "./hub-store.ts"
import { sessionHubLimits } from "./limits.ts"

export interface GuestLineParts {
  readonly session: string
  readonly store: HubStore
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  /** A supervisor that was not there before: what its predecessor had is lost. */
  renewed(): void
  take(message: HubUp, note: () => void): void
  heard(frame: Control): void
  /** It came, or it went. */
  changed(): void
  /** Its process is gone, and so is its connection. */
  lost(cause: TurnCause): void
}

/** The hub's end of the line to one session's supervisor: connected again while its process lives. */
export class GuestLine {
  readonly #parts: GuestLineParts
  #guest: Guest | undefined
  #socket: HubSocket | undefined
  #link: ReliableLink<HubDown, HubUp> | undefined

  constructor(parts: GuestLineParts) {
    this.#parts = parts
  }

  get guest(): Guest | undefined {
    return this.#guest
  }

  get isTogether(): boolean {
    return this.#link?.isTogether ?? false
  }

  /** Stays with it until it is gone. */
  follow(guest: Guest): void {
    this.#guest = guest
    void this.#keep(guest)
    void guest.ended.then((cause) => this.#gone(guest, cause))
  }

  /** What was put into the outbox is sent. */
  flush(): void {
    this.#link?.flush()
  }

  /** A stream on which a supervisor comes; resolves when it is gone again. */
  async accept(stream: Duplex): Promise<void> {
    const { store, session, clock } = this.#parts
    const admit = ({ url }: { readonly url: string }): string | undefined => {
      const { searchParams } = new URL(url, "ws://hub")
      if (searchParams.get("role") !== "runner") return "400 Bad Request"
      return store.sessionOf(searchParams.get("token") ?? "") === session ? undefined : "401 Unauthorized"
    }
    const socket = await HubSocket.answer(stream, { clock, admit })
    try {
      this.#converse(socket, await greetingOf(socket, clock))
      await socket.closed
    } finally {
      socket.cut()
      this.#link?.detach(socket)
      if (this.#socket === socket) this.#socket = undefined
      this.#parts.changed()
    }
  }

  /** The supervisor goes on without us. */
  async close(): Promise<void> {
    const guest = this.#guest
    this.#guest = undefined
    this.#socket?.cut()
    await guest?.leave()
  }

  #converse(socket: HubSocket, greeting: Resume): void {
    const { session, store } = this.#parts
    const before = this.#socket
    this.#socket = socket
    if (before) {
      this.#link?.detach(before)
      before.replace()
    }
    if (store.agent(session)?.link !== greeting.link) {
      this.#parts.renewed()
      store.transaction(() => store.beginLink(session, greeting.link))
    }
    const link = new ReliableLink<HubDown, HubUp>({
      link: greeting.link,
      memory: store.memory(session),
      vocabulary: HubUp,
      deliver: (message, note) => this.#parts.take(message, note),
      heard: (frame) => this.#parts.heard(frame),
    })
    this.#link = link
    link.attach(socket, greeting)
    socket.listen((text) => link.receive(socket, text))
    this.#parts.changed()
  }

  async #keep(guest: Guest): Promise<void> {
    const { signal, clock, log, session } = this.#parts
    for (let attempt = 1; this.#guest === guest && !signal.aborted; attempt++) {
      try {
        await this.accept(await guest.connect(signal))
        attempt = 0
      } catch (failure) {
        if (this.#guest === guest) log("debug", "hub.connect", { session, attempt, message: messageOf(failure) })
      }
      if (this.#guest === guest)
        await clock.sleep(backoffMs(attempt + 1, sessionHubLimits.reconnect), signal).catch(() => undefined)
    }
  }

  async #gone(guest: Guest, cause: TurnCause): Promise<void> {
    const { clock, signal } = this.#parts
    // What it said last is still read: its process and its connection end on different ways.
    const patience = new AbortController()
    const late = clock
      .sleep(sessionHubLimits.lastWordsMs, AbortSignal.any([signal, patience.signal]))
      .catch(() => undefined)
    if (this.#socket) await Promise.race([this.#socket.closed, late])
    patience.abort()
    if (this.#guest !== guest || signal.aborted) return
    this.#guest = undefined
    this.#socket?.cut()
    this.#parts.lost(cause)
  }
}

/** The first thing a supervisor says. */
async function greetingOf(socket: HubSocket, clock: Clock): Promise<Resume> {
  const over = new AbortController()
  const said = new Promise<string>((resolve) => socket.listen(resolve))
  const late = clock.sleep(hubLimits.resumeMs, over.signal).then(nothing, nothing)
  const text = await Promise.race([said, late, socket.closed.then(nothing)])
  over.abort()
  const greeting = Resume.safeParse(parsed(text))
  if (!greeting.success) throw new Fault("invalid", "a supervisor did not greet")
  return greeting.data
}

function nothing(): undefined {
  return undefined
}

function parsed(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "")
  } catch {
    return undefined
  }
}
