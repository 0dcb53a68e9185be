import type { AgentStatus } from "@warren/protocol/hub/words.ts"
import { Journal } from "@warren/protocol/journal.ts"
import type { Bell } from "./bell.ts"
import { sessionHubLimits as limits } from "./limits.ts"
import type { Item } from "./turn-book.ts"

/** Tells everybody who reads what happened, and remembers how the agent is. */
export class Teller {
  readonly feed = new Journal<Item>(limits.feedItems, Date.now() * 1000)
  readonly #bell: Bell
  #status: AgentStatus = "idle"
  #detail: string | undefined
  #models: string[] = []

  constructor(bell: Bell) {
    this.#bell = bell
  }

  get status(): AgentStatus {
    return this.#status
  }

  get detail(): string | undefined {
    return this.#detail
  }

  get models(): string[] {
    return this.#models
  }

  tell(items: readonly Item[]): void {
    for (const item of items) {
      if (item.type === "agent.status") this.show(item.status, item.detail)
      else this.feed.append(item)
      if (item.type === "models") this.#models = item.models
      if (item.type === "prompt" || item.type === "message.finalize") this.#bell.ring()
    }
  }

  show(status: AgentStatus, detail?: string): void {
    if (this.#status === status && this.#detail === detail) return
    this.#status = status
    this.#detail = detail
    this.feed.append({ type: "agent.status", status, ...(detail === undefined ? {} : { detail }) })
  }
}
