import { Fault } from "@warren/base/fault.ts"
import type { Handlers } from "@warren/protocol/contract.ts"
import type { chatCalls } from "@warren/protocol/user-plane/chat.ts"
import { pageOf } from "../page.ts"
import type { ChatData, Chats } from "./chats.ts"

/** What a user plane answers about chats. */
export function chatHandlers(chats: Chats): Handlers<typeof chatCalls> {
  return {
    "chat.list": async ({ cursor, limit, sessionId }) =>
      pageOf(chats.list(limit + 1, cursor === undefined ? undefined : chatAt(cursor), sessionId), limit, cursorOf),
    "chat.get": async ({ id }) => chats.get(id),
    "chat.messages": async ({ id, ...range }) => chats.messages(id, range),
  }
}

function cursorOf({ updatedAt, id }: ChatData): string {
  return `${updatedAt} ${id}`
}

function chatAt(cursor: string): Pick<ChatData, "id" | "updatedAt"> {
  const [updatedAt = "", id = ""] = cursor.split(" ")
  if (Number.isNaN(Date.parse(updatedAt))) throw new Fault("invalid", "that cursor is not one of ours")
  return { updatedAt, id }
}
