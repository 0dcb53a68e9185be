import { writeSync } from "node:fs"
import { systemClock } from "@warren/base/clock.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { Chats, mainChatId } from "../chats.ts"
import { chatMetaMigrations, chatMigrations } from "../schema.ts"

/** A process to be killed: speaks for ever, and says a line for each thing once it has returned. */
const [, , path = ""] = process.argv
const chats = new Chats(new Database(path, { migrations: [...chatMigrations, ...chatMetaMigrations] }), systemClock)
const say = (...words: readonly (string | number)[]): void => void writeSync(1, `${words.join(" ")}\n`)
for (;;) {
  const { id, seq } = chats.append(mainChatId, { role: "assistant", state: "open" })
  say("message", id, seq)
  for (let word = 0; word < 5; word++) {
    say("change", id, chats.change(mainChatId, id, { kind: "text", type: "text", text: `${word},` }))
  }
  say("final", id, chats.finalize(mainChatId, id, "end_turn").changedSeq)
}
