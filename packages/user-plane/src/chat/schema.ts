import type { Migration } from "@warren/base/sqlite/migrations.ts"

/**
 * `seq` counts everything that happens in a chat. A message's `parts` are as of `parts_seq`; what came after that is in
 * `chat_changes`, one small row each, until it is folded in.
 */
export const chatMigrations: readonly Migration[] = [
  {
    name: "chats",
    sql: `CREATE TABLE chats (
        n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, title TEXT, session_id TEXT,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, last_seq INTEGER NOT NULL) STRICT;
      CREATE INDEX chats_by_use ON chats (updated_at, n);
      CREATE INDEX chats_by_session ON chats (session_id);
      CREATE TABLE chat_messages (
        n INTEGER PRIMARY KEY, chat_n INTEGER NOT NULL REFERENCES chats (n) ON DELETE CASCADE, seq INTEGER NOT NULL,
        id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL, parts_seq INTEGER NOT NULL, changed_seq INTEGER NOT NULL,
        bytes INTEGER NOT NULL, changes INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT, created_at INTEGER NOT NULL) STRICT;
      CREATE UNIQUE INDEX chat_messages_by_seq ON chat_messages (chat_n, seq);
      CREATE UNIQUE INDEX chat_messages_by_id ON chat_messages (chat_n, id);
      CREATE INDEX chat_messages_by_parts ON chat_messages (chat_n, parts_seq);
      CREATE INDEX chat_messages_open ON chat_messages (state) WHERE state = 'open';
      CREATE TABLE chat_changes (
        chat_n INTEGER NOT NULL REFERENCES chats (n) ON DELETE CASCADE, seq INTEGER NOT NULL,
        message_n INTEGER NOT NULL REFERENCES chat_messages (n) ON DELETE CASCADE,
        change TEXT NOT NULL, PRIMARY KEY (chat_n, seq)) STRICT, WITHOUT ROWID;
      CREATE INDEX chat_changes_by_message ON chat_changes (message_n, seq);`,
  },
]

/** A later one: databases that have the tables above exist. */
export const chatMetaMigrations: readonly Migration[] = [
  { name: "chat-message-meta", sql: "ALTER TABLE chat_messages ADD COLUMN meta TEXT;" },
]
