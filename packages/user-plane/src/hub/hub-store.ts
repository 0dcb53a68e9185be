import { createHash } from "node:crypto"
import type { Database } from "@warren/base/sqlite/database.ts"
import type { Row } from "@warren/base/sqlite/value.ts"
import { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import type { LinkMemory, Kept } from "@warren/protocol/hub/link-memory.ts"
import type { HubDown } from "@warren/protocol/hub/messages.ts"
import type { TurnCause } from "@warren/protocol/hub/words.ts"
import type { Question } from "@warren/protocol/user-plane/agents.ts"
import { Provision, Provisioned } from "@warren/protocol/user-plane/provision.ts"
import type { z } from "zod"
import { movedPrompt, type PromptMode, type PromptRecord, type PromptState } from "./prompt.ts"

export type QuestionData = z.output<typeof Question>

export interface AgentRecord {
  readonly session: string
  readonly spec: AgentSpec
  readonly link?: string | undefined
  readonly wishes: Provision
  /** Absent until everything it wished for is there. */
  readonly provisioned?: Provisioned | undefined
}

export interface NewPrompt extends Pick<
  PromptRecord,
  "id" | "channel" | "chatId" | "content" | "wishes" | "mode" | "dueAt"
> {
  readonly isFirst: boolean
}

/** What the hub must not forget. Everything that belongs together is changed in one transaction of the caller's. */
export class HubStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Deltas survive a kill; what a person was told is done survives more. */
  transaction<T>(work: () => T, survives: "kill" | "power cut" = "power cut"): T {
    return this.#database.transaction(work, survives)
  }

  agents(): AgentRecord[] {
    return this.#database.all("SELECT * FROM agents", [], agentOf)
  }

  agent(session: string): AgentRecord | undefined {
    return this.#database.get("SELECT * FROM agents WHERE session = ?", [session], agentOf)
  }

  /** Tokens are kept as what can be compared, not as what can be used. */
  sessionOf(token: string): string | undefined {
    return this.#database.get("SELECT session FROM agents WHERE token = ?", [digest(token)], (row) =>
      String(row["session"]),
    )
  }

  /** One that is there is to be made ready anew. */
  putAgent(session: string, spec: AgentSpec, wishes: Provision, now: number): void {
    this.#database.run(
      `INSERT INTO agents (session, spec, wishes, token, received, sent, created_at) VALUES (?, ?, ?, ?, 0, 0, ?)
       ON CONFLICT (session) DO UPDATE SET spec = excluded.spec, wishes = excluded.wishes, provisioned = NULL`,
      [session, JSON.stringify(spec), JSON.stringify(wishes), digest(`none ${session}`), now],
    )
  }

  /** What came along is in the sandbox now, and not kept twice. */
  setProvisioned(session: string, { attachments: _, ...wishes }: Provision, provisioned: Provisioned): void {
    const sql = "UPDATE agents SET wishes = ?, provisioned = ? WHERE session = ?"
    this.#database.run(sql, [JSON.stringify(wishes), JSON.stringify(provisioned), session])
  }

  setToken(session: string, token: string): void {
    this.#database.run("UPDATE agents SET token = ? WHERE session = ?", [digest(token), session])
  }

  deleteAgent(session: string): void {
    this.#database.run("DELETE FROM agents WHERE session = ?", [session])
  }

  /** A new supervisor: nothing of what was between us and the one before it holds. */
  beginLink(session: string, link: string | undefined): void {
    this.#database.run("DELETE FROM agent_outbox WHERE session = ?", [session])
    this.#database.run("UPDATE agents SET link = ?, received = 0, sent = 0 WHERE session = ?", [link ?? null, session])
  }

  memory(session: string): LinkMemory<HubDown> {
    return new StoredMemory(this.#database, session)
  }

  /** Whether the supervisor may not have that prompt yet. */
  isInOutbox(session: string, promptId: string): boolean {
    const sql = "SELECT message FROM agent_outbox WHERE session = ?"
    const messages = this.#database.all(sql, [session], (row) => JSON.parse(String(row["message"])) as HubDown)
    return messages.some((message) => message.type === "prompt" && message.messageId === promptId)
  }

  chatOf(session: string, channel: string): string | undefined {
    const sql = "SELECT chat_id FROM agent_channels WHERE session = ? AND channel = ?"
    return this.#database.get(sql, [session, channel], (row) => String(row["chat_id"]))
  }

  /** `recital`: what its agent is told with the next prompt; a new conversation has none. */
  setChat(session: string, channel: string, chatId: string, recital?: string): void {
    this.#database.run(
      `INSERT INTO agent_channels (session, channel, chat_id, recital) VALUES (?, ?, ?, ?)
       ON CONFLICT (session, channel) DO UPDATE SET chat_id = excluded.chat_id, recital = excluded.recital`,
      [session, channel, chatId, recital ?? null],
    )
  }

  /** Once: whoever has it has told it. */
  takeRecital(session: string, channel: string): string | undefined {
    const sql = "SELECT recital FROM agent_channels WHERE session = ? AND channel = ? AND recital IS NOT NULL"
    const found = this.#database.get(sql, [session, channel], (row) => String(row["recital"]))
    if (found !== undefined)
      this.#database.run("UPDATE agent_channels SET recital = NULL WHERE session = ? AND channel = ?", [
        session,
        channel,
      ])
    return found
  }

  channels(session: string): { channel: string; chatId: string }[] {
    const sql = "SELECT * FROM agent_channels WHERE session = ? ORDER BY channel"
    return this.#database.all(sql, [session], (row) => ({
      channel: String(row["channel"]),
      chatId: String(row["chat_id"]),
    }))
  }

  addPrompt(session: string, prompt: NewPrompt, now: number): PromptRecord {
    this.#database.run(
      `INSERT INTO agent_prompts (session, id, channel, chat_id, content, wishes, mode, state, rank, due_at, tries, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, 0, ?)`,
      [
        ...[
          session,
          prompt.id,
          prompt.channel,
          prompt.chatId,
          prompt.content,
          JSON.stringify(prompt.wishes),
          prompt.mode,
        ],
        ...[prompt.isFirst ? -1 : 0, prompt.dueAt, now],
      ],
    )
    return this.#one(session, prompt.id)
  }

  prompt(session: string, id: string): PromptRecord | undefined {
    return this.#database.get("SELECT * FROM agent_prompts WHERE session = ? AND id = ?", [session, id], promptOf)
  }

  /** All that are not done, in the order in which they will be. */
  openPrompts(session: string): PromptRecord[] {
    const sql = "SELECT * FROM agent_prompts WHERE session = ? AND state <> 'done' ORDER BY state = 'queued', rank, n"
    return this.#database.all(sql, [session], promptOf)
  }

  /** Those of its channel that are collected wait for the newest of them. */
  postpone(session: string, channel: string, dueAt: number): void {
    const sql =
      "UPDATE agent_prompts SET due_at = ? WHERE session = ? AND channel = ? AND state = 'queued' AND mode = 'collect'"
    this.#database.run(sql, [dueAt, session, channel])
  }

  move(session: string, id: string, move: Parameters<typeof movedPrompt>[1], cause?: TurnCause): PromptRecord {
    const state = movedPrompt(this.#one(session, id).state, move)
    const sql = `UPDATE agent_prompts SET state = ?, cause = ?, tries = tries + ?, rank = CASE ? WHEN 'requeue' THEN -2 ELSE rank END
       WHERE session = ? AND id = ?`
    this.#database.run(sql, [state, cause ?? null, move === "send" ? 1 : 0, move, session, id])
    return this.#one(session, id)
  }

  setContent(session: string, id: string, content: string): void {
    this.#database.run("UPDATE agent_prompts SET content = ? WHERE session = ? AND id = ?", [content, session, id])
  }

  speaks(session: string, id: string, turn: string, speaking: string): void {
    const sql = "UPDATE agent_prompts SET turn = ?, speaking = ? WHERE session = ? AND id = ?"
    this.#database.run(sql, [turn, speaking, session, id])
  }

  /** The messages that somebody still speaks in. */
  speaking(): Set<string> {
    const sql = "SELECT speaking FROM agent_prompts WHERE state = 'sent' AND speaking IS NOT NULL"
    return new Set(this.#database.all(sql, [], (row) => String(row["speaking"])))
  }

  questions(session: string): QuestionData[] {
    return this.#database.all(
      "SELECT * FROM agent_questions WHERE session = ? ORDER BY asked_at",
      [session],
      questionOf,
    )
  }

  ask(session: string, promptId: string, question: QuestionData): void {
    this.#database.run(
      `INSERT INTO agent_questions (session, id, chat_id, prompt_id, text, options, asked_at) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO NOTHING`,
      [
        ...[session, question.id, question.chatId, promptId, question.text],
        ...[question.options ? JSON.stringify(question.options) : null, Date.parse(question.askedAt)],
      ],
    )
  }

  /** Those of a prompt, or the one with that id. Returns the ids that were open. */
  closeQuestions(session: string, which: { readonly promptId: string } | { readonly id: string }): string[] {
    const [column, value] = "id" in which ? ["id", which.id] : ["prompt_id", which.promptId]
    const sql = `DELETE FROM agent_questions WHERE session = ? AND ${column} = ? RETURNING id`
    return this.#database.all(sql, [session, value], (row) => String(row["id"]))
  }

  #one(session: string, id: string): PromptRecord {
    const found = this.prompt(session, id)
    if (!found) throw new Error(`there is no prompt ${id}`)
    return found
  }
}

/** A link's memory that outlives its process. */
class StoredMemory implements LinkMemory<HubDown> {
  received: number
  readonly #database: Database
  readonly #session: string

  constructor(database: Database, session: string) {
    this.#database = database
    this.#session = session
    const sql = "SELECT received FROM agents WHERE session = ?"
    this.received = database.get(sql, [session], (row) => Number(row["received"])) ?? 0
  }

  note(seq: number): void {
    this.#database.run("UPDATE agents SET received = ? WHERE session = ?", [seq, this.#session])
    this.received = seq
  }

  push(message: HubDown): Kept<HubDown> {
    const sql = "UPDATE agents SET sent = sent + 1 WHERE session = ? RETURNING sent"
    const [seq = 0] = this.#database.all(sql, [this.#session], (row) => Number(row["sent"]))
    const text = JSON.stringify(message)
    this.#database.run("INSERT INTO agent_outbox (session, seq, message) VALUES (?, ?, ?)", [this.#session, seq, text])
    return { seq, message, bytes: Buffer.byteLength(text) }
  }

  forget(upTo: number): void {
    this.#database.run("DELETE FROM agent_outbox WHERE session = ? AND seq <= ?", [this.#session, upTo])
  }

  after(seq: number, limit: number): Kept<HubDown>[] {
    const sql = "SELECT seq, message FROM agent_outbox WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"
    return this.#database.all(sql, [this.#session, seq, limit], (row) => {
      const text = String(row["message"])
      return { seq: Number(row["seq"]), message: JSON.parse(text) as HubDown, bytes: Buffer.byteLength(text) }
    })
  }
}

function digest(token: string): string {
  return createHash("sha256").update(token).digest("hex")
}

function agentOf(row: Row): AgentRecord {
  return {
    session: String(row["session"]),
    spec: AgentSpec.parse(JSON.parse(String(row["spec"]))),
    ...(row["link"] === null ? {} : { link: String(row["link"]) }),
    ...provisionOf(row),
  }
}

/** Agents of before there were wishes have none, and are ready. */
function provisionOf(row: Row): Pick<AgentRecord, "wishes" | "provisioned"> {
  if (row["wishes"] === null) return { wishes: {}, provisioned: { instructions: [], attachments: [] } }
  const wishes = Provision.parse(JSON.parse(String(row["wishes"])))
  if (row["provisioned"] === null) return { wishes }
  return { wishes, provisioned: Provisioned.parse(JSON.parse(String(row["provisioned"]))) }
}

function promptOf(row: Row): PromptRecord {
  return {
    ...{ n: Number(row["n"]), id: String(row["id"]), channel: String(row["channel"]), chatId: String(row["chat_id"]) },
    content: String(row["content"]),
    wishes: JSON.parse(String(row["wishes"])) as PromptRecord["wishes"],
    ...{ mode: row["mode"] as PromptMode, state: row["state"] as PromptState, tries: Number(row["tries"]) },
    ...{ dueAt: Number(row["due_at"]), createdAt: Number(row["created_at"]) },
    ...(row["turn"] === null ? {} : { turn: String(row["turn"]) }),
    ...(row["speaking"] === null ? {} : { speaking: String(row["speaking"]) }),
    ...(row["cause"] === null ? {} : { cause: row["cause"] as TurnCause }),
  }
}

function questionOf(row: Row): QuestionData {
  return {
    ...{ id: String(row["id"]), chatId: String(row["chat_id"]), text: String(row["text"]) },
    ...(row["options"] === null ? {} : { options: JSON.parse(String(row["options"])) as string[] }),
    askedAt: new Date(Number(row["asked_at"])).toISOString(),
  }
}
