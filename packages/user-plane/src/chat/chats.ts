import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Database } from "@warren/base/sqlite/database.ts"
import type { Row } from "@warren/base/sqlite/value.ts"
import type { Chat, ChatMessage } from "@warren/protocol/user-plane/chat.ts"
import type { z } from "zod"
import { fold, type Change, type Part } from "./fold.ts"

export type ChatData = z.output<typeof Chat>
export type Message = z.output<typeof ChatMessage>
export type FinalReason = NonNullable<Message["reason"]>
/** What is known of a message besides what it says. */
export type MessageMeta = Pick<Message, "cause" | "usage" | "promptId" | "isReverted" | "endedAt">

export const mainChatId = "main"
const chatsMax = 100_000
/** A message must fit into one answer with room to spare: frames hold 1 MiB. */
const messageBytesMax = 384 * 1024
const answerBytesMax = 768 * 1024
/** Changes of a message kept one by one; then they are folded, so that reading one never takes long. */
const changesMax = 512

/** Something that happened in a chat: a message as it is now, or a change to one that whoever reads on has already. */
export type ChatEvent =
  | { readonly seq: number; readonly message: Message }
  | { readonly seq: number; readonly messageId: string; readonly change: Change }

export interface NewMessage {
  /** Given by whoever may send it twice: the second time nothing happens. */
  readonly id?: string | undefined
  readonly role: Message["role"]
  readonly parts?: readonly Part[]
  /** `open`: changes follow, and a `finalize`. */
  readonly state?: Message["state"]
  readonly meta?: MessageMeta
}

/** Chats and what was said in them. What a method has returned is on disk; only then may it be shown to anybody. */
export class Chats {
  readonly #database: Database
  readonly #clock: Clock

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
    const now = clock.now()
    const values = [mainChatId, now, now]
    database.run(
      `INSERT INTO chats (id, kind, created_at, updated_at, last_seq) VALUES (?, 'main', ?, ?, 0) ON CONFLICT (id) DO NOTHING`,
      values,
    )
  }

  create(options: { readonly title?: string | undefined; readonly sessionId?: string | undefined } = {}): ChatData {
    const id = newId("cht")
    const now = this.#clock.now()
    return this.#database.atomically(() => {
      const count = this.#database.get("SELECT count(*) AS n FROM chats", [], (row) => Number(row["n"])) ?? 0
      if (count >= chatsMax) throw new Fault("limit", `there are ${chatsMax} chats already`, { hint: "delete some" })
      this.#database.run(
        `INSERT INTO chats (id, kind, title, session_id, created_at, updated_at, last_seq) VALUES (?, 'session', ?, ?, ?, ?, 0)`,
        [id, options.title ?? null, options.sessionId ?? null, now, now],
      )
      return chatOf(this.#chat(id))
    })
  }

  get(id: string): ChatData {
    return chatOf(this.#chat(id))
  }

  /** The one last spoken in first. `before`: the last one of the page before. */
  list(limit: number, before?: Pick<ChatData, "id" | "updatedAt">, sessionId?: string): ChatData[] {
    const last =
      before && this.#database.get("SELECT n FROM chats WHERE id = ?", [before.id], (row) => Number(row["n"]))
    const at = before ? [Date.parse(before.updatedAt), last ?? 0] : [Number.MAX_SAFE_INTEGER, 0]
    const bySession = sessionId === undefined ? "" : "AND session_id = ?"
    return this.#database.all(
      `SELECT * FROM chats WHERE (updated_at, n) < (?, ?) ${bySession} ORDER BY updated_at DESC, n DESC LIMIT ?`,
      [...at, ...(sessionId === undefined ? [] : [sessionId]), limit],
      chatOf,
    )
  }

  rename(id: string, title: string): void {
    this.#database.run("UPDATE chats SET title = ? WHERE n = ?", [title, this.#n(id)])
  }

  /** With everything that was said. The main chat stays. */
  delete(id: string): boolean {
    if (id === mainChatId) throw new Fault("invalid", "the main chat cannot be deleted")
    return this.#database.run("DELETE FROM chats WHERE id = ?", [id]) > 0
  }

  append(chatId: string, message: NewMessage): Message {
    const id = message.id ?? newId("msg")
    const parts = JSON.stringify(message.parts ?? [])
    const bytes = checkBytes(Buffer.byteLength(parts))
    return this.#database.atomically(() => {
      const known = this.#message(chatId, id)
      if (known) return this.#read(known)
      const seq = this.#next(chatId)
      this.#database.run(
        `INSERT INTO chat_messages (chat_n, seq, id, role, parts, parts_seq, changed_seq, bytes, changes, state, created_at, meta)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?)`,
        [
          ...[
            this.#n(chatId),
            seq,
            id,
            message.role,
            parts,
            seq,
            seq,
            bytes,
            message.state ?? "final",
            this.#clock.now(),
          ],
          message.meta ? JSON.stringify(message.meta) : null,
        ],
      )
      return this.#read(this.#messageRow(chatId, id))
    })
  }

  /** Costs the same however long the message is. Returns the change's number. */
  change(chatId: string, messageId: string, change: Change): number {
    const text = JSON.stringify(change)
    return this.#database.atomically(() => {
      const row = this.#openMessage(chatId, messageId)
      const n = Number(row["n"])
      const bytes = this.#grown(row, change, Buffer.byteLength(text))
      const seq = this.#next(chatId)
      const values = [Number(row["chat_n"]), seq, n, text]
      this.#database.run("INSERT INTO chat_changes (chat_n, seq, message_n, change) VALUES (?, ?, ?, ?)", values)
      const changed = "UPDATE chat_messages SET changed_seq = ?, bytes = ?, changes = changes + 1 WHERE n = ?"
      this.#database.run(changed, [seq, bytes, n])
      if (Number(row["changes"]) + 1 >= changesMax) this.#fold(this.#messageRow(chatId, messageId), seq)
      return seq
    })
  }

  /** No more comes. Again, or by somebody else: what was first holds. */
  finalize(chatId: string, messageId: string, reason: FinalReason, meta: MessageMeta = {}): Message {
    return this.#database.atomically(() => {
      const row = this.#messageRow(chatId, messageId)
      if (row["state"] === "final") return this.#read(row)
      this.#note(row, meta)
      return this.#finalize(chatId, row, reason)
    })
  }

  /** It and everything after it is as if it had not been said; it is still there to be read. */
  revert(chatId: string, messageId: string): Message[] {
    return this.#database.atomically(() => {
      const { seq, chat_n } = this.#messageRow(chatId, messageId)
      const sql = "SELECT * FROM chat_messages WHERE chat_n = ? AND seq >= ? ORDER BY seq"
      const rows = this.#database.all(sql, [Number(chat_n), Number(seq)], (row) => ({ ...row, chat_id: chatId }))
      return rows.map((row) => {
        this.#note(row, { isReverted: true })
        this.#fold(row, this.#next(chatId))
        return this.#read(this.#messageRow(chatId, String((row as Row)["id"])))
      })
    })
  }

  /** After a restart: what was still open then will get no more, except for those whose speaker goes on. */
  finalizeLost(kept: ReadonlySet<string> = new Set()): number {
    return this.#database.atomically(() => {
      const sql = `SELECT m.*, c.id AS chat_id FROM chat_messages m JOIN chats c ON c.n = m.chat_n WHERE m.state = 'open'`
      const rows = this.#database.all(sql, [], (row) => row).filter((row) => !kept.has(String(row["id"])))
      for (const row of rows) this.#finalize(String(row["chat_id"]), row, "lost")
      return rows.length
    })
  }

  message(chatId: string, id: string): Message {
    return this.#read(this.#messageRow(chatId, id))
  }

  /** In order; as many as one answer holds. `after`: from there on. `before`: up to there. Neither: the newest. */
  messages(
    chatId: string,
    range: { readonly after?: number | undefined; readonly before?: number | undefined; readonly limit: number },
  ): { items: Message[]; hasMore: boolean } {
    const isForward = range.after !== undefined
    const [sign, direction] = isForward ? [">", "ASC"] : ["<", "DESC"]
    const rows = this.#database.all(
      `SELECT * FROM chat_messages WHERE chat_n = ? AND seq ${sign} ? ORDER BY seq ${direction} LIMIT ?`,
      [this.#n(chatId), range.after ?? range.before ?? Number.MAX_SAFE_INTEGER, range.limit + 1],
      (row) => row,
    )
    const fitting = fit(rows, range.limit)
    const items = fitting.map((row) => this.#read({ ...row, chat_id: chatId }))
    return { items: isForward ? items : items.toReversed(), hasMore: rows.length > fitting.length }
  }

  /** What happened after `seq`, in order: applied to what was read before it gives what is there now. */
  events(chatId: string, after: number, limit: number): ChatEvent[] {
    const n = this.#n(chatId)
    const messages = this.#database.all(
      "SELECT * FROM chat_messages WHERE chat_n = ? AND parts_seq > ? ORDER BY parts_seq LIMIT ?",
      [n, after, limit],
      (row) => ({ seq: Number(row["parts_seq"]), message: messageOf({ ...row, chat_id: chatId }, partsOf(row)) }),
    )
    const changes = this.#database.all(
      `SELECT c.seq, c.change, m.id FROM chat_changes c JOIN chat_messages m ON m.n = c.message_n
       WHERE c.chat_n = ? AND c.seq > ? ORDER BY c.seq LIMIT ?`,
      [n, after, limit],
      (row) => ({ seq: Number(row["seq"]), messageId: String(row["id"]), change: changeOf(row) }),
    )
    return [...messages, ...changes].toSorted((a, b) => a.seq - b.seq).slice(0, limit)
  }

  /** How large the message will be, at most. Measured only when it might be too much: a tool's news replaces what was there. */
  #grown(row: Row, change: Change, changeBytes: number): number {
    const bytes = Number(row["bytes"]) + changeBytes
    if (bytes <= messageBytesMax) return bytes
    const parts = fold(partsOf(row), [...this.#changes(Number(row["n"])), change])
    const measured = checkBytes(Buffer.byteLength(JSON.stringify(parts)))
    this.#fold(row, Number(row["changed_seq"]))
    return measured
  }

  #note(row: Row, meta: MessageMeta): void {
    const sql = "UPDATE chat_messages SET meta = ? WHERE n = ?"
    this.#database.run(sql, [JSON.stringify({ ...metaOf(row), ...meta }), Number(row["n"])])
  }

  #finalize(chatId: string, row: Row, reason: FinalReason): Message {
    this.#fold(row, this.#next(chatId))
    this.#database.run("UPDATE chat_messages SET state = 'final', reason = ? WHERE n = ?", [reason, Number(row["n"])])
    return this.#read(this.#messageRow(chatId, String(row["id"])))
  }

  /** From now on a reader gets the whole message at `seq` instead of what led to it. */
  #fold(row: Row, seq: number): void {
    const n = Number(row["n"])
    const parts = JSON.stringify(fold(partsOf(row), this.#changes(n)))
    this.#database.run("DELETE FROM chat_changes WHERE message_n = ?", [n])
    this.#database.run(
      "UPDATE chat_messages SET parts = ?, parts_seq = ?, changed_seq = ?, bytes = ?, changes = 0 WHERE n = ?",
      [parts, seq, seq, Buffer.byteLength(parts), n],
    )
  }

  #read(row: Row): Message {
    return messageOf(row, fold(partsOf(row), Number(row["changes"]) > 0 ? this.#changes(Number(row["n"])) : []))
  }

  #changes(messageN: number): Change[] {
    return this.#database.all("SELECT change FROM chat_changes WHERE message_n = ? ORDER BY seq", [messageN], changeOf)
  }

  #next(chatId: string): number {
    const sql =
      "UPDATE chats SET last_seq = last_seq + 1, updated_at = max(updated_at, ?) WHERE id = ? RETURNING last_seq"
    const seq = this.#database.get(sql, [this.#clock.now(), chatId], (row) => Number(row["last_seq"]))
    if (seq === undefined) throw noChat(chatId)
    return seq
  }

  #chat(id: string): Row {
    const row = this.#database.get("SELECT * FROM chats WHERE id = ?", [id], (found) => found)
    if (!row) throw noChat(id)
    return row
  }

  #n(id: string): number {
    return Number(this.#chat(id)["n"])
  }

  #message(chatId: string, id: string): Row | undefined {
    const sql =
      "SELECT m.*, c.id AS chat_id FROM chat_messages m JOIN chats c ON c.n = m.chat_n WHERE c.id = ? AND m.id = ?"
    return this.#database.get(sql, [chatId, id], (row) => row)
  }

  #messageRow(chatId: string, id: string): Row {
    const row = this.#message(chatId, id)
    if (!row) throw new Fault("not_found", `there is no message ${id} in this chat`, { subject: `message:${id}` })
    return row
  }

  #openMessage(chatId: string, id: string): Row {
    const row = this.#messageRow(chatId, id)
    if (row["state"] === "open") return row
    throw new Fault("conflict", "the message is final: nothing can be added", { subject: `message:${id}` })
  }
}

function noChat(id: string): Fault {
  return new Fault("not_found", `there is no chat ${id}`, { subject: `chat:${id}` })
}

function checkBytes(bytes: number): number {
  if (bytes > messageBytesMax)
    throw new Fault("limit", `a message holds at most ${messageBytesMax} bytes`, { hint: "begin another" })
  return bytes
}

/** The first rows that fit into one answer; always one, if there is one. */
function fit(rows: readonly Row[], limit: number): Row[] {
  let bytes = 0
  return rows.slice(0, limit).filter((row, index) => (bytes += Number(row["bytes"])) <= answerBytesMax || index === 0)
}

function partsOf(row: Row): Part[] {
  return JSON.parse(String(row["parts"])) as Part[]
}

function changeOf(row: Row): Change {
  return JSON.parse(String(row["change"])) as Change
}

function metaOf(row: Row): MessageMeta {
  return row["meta"] === null || row["meta"] === undefined ? {} : (JSON.parse(String(row["meta"])) as MessageMeta)
}

function chatOf(row: Row): ChatData {
  return {
    id: String(row["id"]),
    kind: row["kind"] as ChatData["kind"],
    ...(row["title"] === null ? {} : { title: String(row["title"]) }),
    ...(row["session_id"] === null ? {} : { sessionId: String(row["session_id"]) }),
    createdAt: new Date(Number(row["created_at"])).toISOString(),
    updatedAt: new Date(Number(row["updated_at"])).toISOString(),
    lastSeq: Number(row["last_seq"]),
  }
}

function messageOf(row: Row, parts: Part[]): Message {
  return {
    id: String(row["id"]),
    chatId: String(row["chat_id"]),
    seq: Number(row["seq"]),
    role: row["role"] as Message["role"],
    parts,
    state: row["state"] as Message["state"],
    ...(row["reason"] === null ? {} : { reason: row["reason"] as FinalReason }),
    ...metaOf(row),
    createdAt: new Date(Number(row["created_at"])).toISOString(),
    changedSeq: Number(row["changed_seq"]),
  }
}
