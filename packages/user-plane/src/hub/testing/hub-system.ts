import { systemClock, type Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { createLog } from "@warren/base/log.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import type { Provision } from "@warren/protocol/user-plane/provision.ts"
import { Chats } from "../../chat/chats.ts"
import { chatMetaMigrations, chatMigrations } from "../../chat/schema.ts"
import { Hub } from "../hub.ts"
import { HubStore } from "../hub-store.ts"
import { hubMigrations, provisionMigrations, recitalMigrations } from "../schema.ts"
import type { ToolAnswerer } from "../tool-desk.ts"
import type { SessionHub } from "../session-hub.ts"
import type { Item } from "../turn-book.ts"
import type { HostPlaces } from "./host-places.ts"

const migrations = [
  ...chatMigrations,
  ...chatMetaMigrations,
  ...hubMigrations,
  ...provisionMigrations,
  ...recitalMigrations,
]

/** A hub on a database, with real supervisors; it can go and come back. */
export class HubSystem implements AsyncDisposable {
  readonly logged: string[] = []
  chats!: Chats
  /** What agents are answered when they ask for a tool. */
  tools: ToolAnswerer | undefined
  hub!: Hub
  readonly #path: string
  readonly #places: HostPlaces
  readonly #clock: Clock
  #database: Database | undefined

  constructor(path: string, places: HostPlaces, clock: Clock = systemClock) {
    this.#path = path
    this.#places = places
    this.#clock = clock
    this.#open()
  }

  /** Another runner takes over. */
  async restart(): Promise<void> {
    await this.#close()
    this.#open()
  }

  start(session: string, spec: AgentSpec, wishes: Provision = {}): Promise<SessionHub> {
    return this.hub.start(session, spec, wishes, new AbortController().signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close()
  }

  #open(): void {
    const database = new Database(this.#path, { migrations })
    this.#database = database
    this.chats = new Chats(database, this.#clock)
    const store = new HubStore(database)
    this.chats.finalizeLost(store.speaking())
    const log = createLog((line) => void this.logged.push(line), { level: "debug" })
    this.hub = new Hub({
      store,
      chats: this.chats,
      places: this.#places,
      clock: this.#clock,
      log,
      tools: (...asked) => this.#ask(...asked),
    })
  }

  #ask(...asked: Parameters<ToolAnswerer>): Promise<unknown> {
    if (!this.tools) throw new Fault("unsupported", "there are no tools here")
    return this.tools(...asked)
  }

  async #close(): Promise<void> {
    await this.hub[Symbol.asyncDispose]()
    this.#database?.close()
  }
}

/** Everything that is told from `after` on, up to the first item that fits. */
export async function feedUntil(hub: SessionHub, fits: (item: Item) => boolean, after = 0): Promise<Item[]> {
  const stop = new AbortController()
  const seen: Item[] = []
  for await (const { item } of hub.feed.read(after, stop.signal)) {
    seen.push(item)
    if (fits(item)) return seen
  }
  return seen
}

export const isDone =
  (messageId: string) =>
  (item: Item): boolean =>
    item.type === "prompt" && item.prompt.messageId === messageId && item.prompt.state === "done"
