import { z } from "zod"
import { contract } from "../contract.ts"
import { page, pageInput } from "./page.ts"

const textCharsMax = 16_000
const tagCharsMax = 64
const tagsMax = 16
const queryCharsMax = 2_000
const hitsMax = 100

const Tag = z
  .string()
  .regex(/^[\p{L}\p{N}][\p{L}\p{N}_./:-]*$/u)
  .max(tagCharsMax)
  .meta({ id: "MemoryTag", description: "A word to find memories by.", examples: ["project:warren"] })

export const Memory = z
  .object({
    id: z.string().meta({ examples: ["mem_4k2m8q0s6t1v3w5x7y9z"] }),
    text: z.string(),
    tags: z.array(Tag),
    source: z.string().optional().meta({ description: "Who or what it came from." }),
    sessionId: z.string().optional().meta({ description: "The session it was noted in." }),
    createdAt: z.iso.datetime(),
    isEmbedded: z.boolean().meta({ description: "Whether a search by meaning finds it already." }),
  })
  .meta({ id: "Memory", description: "Something to be remembered beyond one session." })

export const MemoryHit = z
  .object({
    memory: Memory,
    score: z.number().meta({ description: "Higher is better; only comparable within one answer." }),
    snippet: z.string().meta({ description: "The part of the text that matches best." }),
    matched: z.enum(["text", "vector", "both"]),
  })
  .meta({ id: "MemoryHit", description: "A memory that was found, and how." })

export const MemoryDegraded = z
  .object({ code: z.string(), detail: z.string() })
  .meta({ id: "MemoryDegraded", description: "Why a search could not use everything it was asked to." })

const MemoryId = z.string().max(64)

export const memoryCalls = contract({
  "memory.add": {
    since: 1,
    scope: "memories:write",
    http: "POST /v1/memories",
    makes: true,
    doc: "Remember a text.",
    in: z.object({
      text: z.string().trim().min(1).max(textCharsMax),
      tags: z.array(Tag).max(tagsMax).default([]),
      source: z.string().max(200).optional(),
      sessionId: z.string().max(64).optional(),
    }),
    out: Memory,
  },
  "memory.list": {
    since: 1,
    scope: "memories:read",
    http: "GET /v1/memories",
    doc: "List memories, the newest first.",
    in: z.object({ ...pageInput, tag: Tag.optional() }),
    out: page(Memory),
  },
  "memory.search": {
    since: 1,
    scope: "memories:read",
    http: "GET /v1/memories/search",
    doc: "Find memories by words, by meaning, or by both. Where meaning is not available, words still are, and the answer says so.",
    in: z.object({
      query: z.string().trim().min(1).max(queryCharsMax),
      mode: z
        .enum(["text", "vector", "hybrid"])
        .optional()
        .meta({ description: "Unless given: both where an embedding endpoint is configured, words where not." }),
      tag: Tag.optional(),
      limit: z.coerce.number().int().min(1).max(hitsMax).default(20),
    }),
    out: z.object({
      items: z.array(MemoryHit),
      mode: z.enum(["text", "vector", "hybrid"]).meta({ description: "What was really used." }),
      degraded: MemoryDegraded.optional(),
    }),
    timeoutMs: 30_000,
  },
  // After the search: its path would take that for an id.
  "memory.get": {
    since: 1,
    scope: "memories:read",
    http: "GET /v1/memories/{id}",
    doc: "Read one memory.",
    in: z.object({ id: MemoryId }),
    out: Memory,
  },
  "memory.delete": {
    since: 1,
    scope: "memories:write",
    http: "DELETE /v1/memories/{id}",
    doc: "Forget a memory.",
    in: z.object({ id: MemoryId }),
    out: z.object({ isDeleted: z.boolean() }),
  },
})
