import type { Clock } from "@warren/base/clock.ts"
import { Fault, isCancellation } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Database } from "@warren/base/sqlite/database.ts"
import type { Answer, Handlers, Received } from "@warren/protocol/contract.ts"
import type { memoryCalls } from "@warren/protocol/user-plane/memory.ts"
import { pageOf } from "../page.ts"
import { Embedder, modelOf } from "./embedder.ts"
import { dimensionsMax, embed, type EmbeddingEndpoint } from "./embeddings.ts"
import { Memories, type Found, type MemoryData, type NewMemory } from "./memories.ts"
import { fuse } from "./ranking.ts"

type SearchInput = Received<typeof memoryCalls, "memory.search">
type SearchAnswer = Answer<typeof memoryCalls, "memory.search">

/** Looked at by each way of searching, before both are brought together. */
const candidatesMax = 200
const snippetCharsMax = 200

interface MemoryOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly embeddings?: EmbeddingEndpoint | undefined
}

/** What a user's agents remember. */
export class Memory implements AsyncDisposable {
  readonly #memories: Memories
  readonly #endpoint: EmbeddingEndpoint | undefined
  readonly #embedder: Embedder | undefined

  constructor({ database, clock, log, embeddings }: MemoryOptions) {
    if (embeddings) checkEndpoint(embeddings)
    this.#memories = new Memories(database, clock)
    this.#endpoint = embeddings
    this.#embedder = embeddings && new Embedder(this.#memories, embeddings, clock, log)
    // What was added before a restart, without an endpoint or with another model has no vector yet.
    this.#embedder?.wake()
  }

  /** Resolves when every memory that can have a vector has one. */
  async settled(): Promise<void> {
    await this.#embedder?.idle()
  }

  add(memory: NewMemory): MemoryData {
    const added = this.#memories.add(memory)
    this.#embedder?.wake()
    return added
  }

  get(id: string): MemoryData {
    return this.#memories.get(id)
  }

  list(limit: number, before: number, tag?: string): { n: number; memory: MemoryData }[] {
    return this.#memories.list(limit, before, tag)
  }

  delete(id: string): boolean {
    return this.#memories.delete(id)
  }

  async search(input: SearchInput, signal: AbortSignal): Promise<SearchAnswer> {
    const { query, limit, tag } = input
    const wanted = input.mode ?? (this.#endpoint ? "hybrid" : "text")
    const near = wanted === "text" ? [] : await this.#near(query, tag, signal)
    if (near instanceof Fault) {
      const items = this.#hits(query, this.#memories.findWords(query, limit, tag), [], limit)
      return { items, mode: "text", degraded: { code: near.code, detail: near.message } }
    }
    const words = wanted === "vector" ? [] : this.#memories.findWords(query, candidatesMax, tag)
    return { items: this.#hits(query, words, near, limit), mode: wanted }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#embedder?.[Symbol.asyncDispose]()
  }

  /** By meaning, or why not. */
  async #near(query: string, tag: string | undefined, signal: AbortSignal): Promise<Found[] | Fault> {
    const endpoint = this.#endpoint
    if (!endpoint) {
      throw new Fault("unsupported", "no embedding endpoint is configured, so memories are found by words only", {
        hint: 'ask with mode "text", or configure [memory.embeddings]',
      })
    }
    try {
      const [vector] = await embed(endpoint, [query], signal)
      return vector ? this.#memories.findVector(vector, modelOf(endpoint), candidatesMax, tag) : []
    } catch (thrown) {
      if (signal.aborted || isCancellation(thrown)) throw thrown
      return Fault.from(thrown)
    }
  }

  #hits(query: string, words: readonly Found[], near: readonly Found[], limit: number): SearchAnswer["items"] {
    const ranked = fuse(words, near).slice(0, limit)
    const memories = this.#memories.byNumbers(ranked.map(({ n }) => n))
    return ranked.flatMap(({ n, snippet, ...rest }) => {
      const memory = memories.get(n)
      return memory ? [{ memory, snippet: snippet ?? beginning(memory.text), ...rest }] : []
    })
  }
}

function beginning(text: string): string {
  return text.length <= snippetCharsMax ? text : `${text.slice(0, snippetCharsMax)}…`
}

function checkEndpoint({ url, model, dimensions }: EmbeddingEndpoint): void {
  const isWeb = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
  if (!isWeb) throw new Fault("invalid", "memory.embeddings.url is not an http or https address")
  if (model === "") throw new Fault("invalid", "memory.embeddings.model is missing")
  if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > dimensionsMax)
    throw new Fault("invalid", `memory.embeddings.dimensions must be from 1 to ${dimensionsMax}`)
}

export function memoryHandlers(memory: Memory): Handlers<typeof memoryCalls> {
  return {
    "memory.add": async (input) => memory.add(input),
    "memory.get": async ({ id }) => memory.get(id),
    "memory.list": async ({ cursor, limit, tag }) => {
      const page = pageOf(memory.list(limit + 1, before(cursor), tag), limit, ({ n }) => String(n))
      return { ...page, items: page.items.map((item) => item.memory) }
    },
    "memory.search": (input, { signal }) => memory.search(input, signal),
    "memory.delete": async ({ id }) => ({ isDeleted: memory.delete(id) }),
  }
}

function before(cursor: string | undefined): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER
  if (!/^\d{1,15}$/.test(cursor)) throw new Fault("invalid", "that cursor is not one of ours")
  return Number(cursor)
}
