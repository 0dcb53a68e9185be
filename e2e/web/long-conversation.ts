import { join } from "node:path"
import { systemClock } from "@warren/base/clock.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { Chats } from "@warren/user-plane/chat/chats.ts"
import { migrations } from "@warren/user-plane/user-plane.ts"

/** So few at once that the runner, which does not wait long for anybody, gets its turn. */
const atOnce = 200

/** Puts many messages into a chat of a Warren that runs, as months of use would: nobody has to say all of them. */
export function writeDown(home: string, chatId: string, count: number): void {
  using database = new Database(join(home, "runner", "internal", "warren.db"), { migrations })
  const chats = new Chats(database, systemClock)
  for (let from = 0; from < count; from += atOnce)
    database.transaction(() => {
      for (let at = from; at < Math.min(count, from + atOnce); at++) chats.append(chatId, messageOf(at))
    }, "kill")
}

function messageOf(at: number): Parameters<Chats["append"]>[1] {
  const text = Array.from({ length: 1 + (at % 7) }, (_, line) => `line ${line} of message ${at}\n`).join("\n")
  return { role: at % 2 === 0 ? "user" : "assistant", parts: [{ type: "text", text }] }
}
