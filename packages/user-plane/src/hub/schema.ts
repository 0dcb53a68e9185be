import type { Migration } from "@warren/base/sqlite/migrations.ts"

/**
 * `received` and `sent` count the messages of the link with the supervisor that has this `link`; what it may not have yet is in
 * `agent_outbox`. They change in the same transaction as what a message leads to: each has its effect once.
 */
export const hubMigrations: readonly Migration[] = [
  {
    name: "agents",
    sql: `CREATE TABLE agents (
        session TEXT PRIMARY KEY, spec TEXT NOT NULL, token TEXT NOT NULL, link TEXT, received INTEGER NOT NULL,
        sent INTEGER NOT NULL, created_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
      CREATE UNIQUE INDEX agents_by_token ON agents (token);
      CREATE TABLE agent_outbox (
        session TEXT NOT NULL REFERENCES agents (session) ON DELETE CASCADE, seq INTEGER NOT NULL, message TEXT NOT NULL,
        PRIMARY KEY (session, seq)) STRICT, WITHOUT ROWID;
      CREATE TABLE agent_channels (
        session TEXT NOT NULL REFERENCES agents (session) ON DELETE CASCADE, channel TEXT NOT NULL, chat_id TEXT NOT NULL,
        PRIMARY KEY (session, channel)) STRICT, WITHOUT ROWID;
      CREATE TABLE agent_prompts (
        n INTEGER PRIMARY KEY, session TEXT NOT NULL REFERENCES agents (session) ON DELETE CASCADE, id TEXT NOT NULL,
        channel TEXT NOT NULL, chat_id TEXT NOT NULL, content TEXT NOT NULL, wishes TEXT NOT NULL, mode TEXT NOT NULL,
        state TEXT NOT NULL, rank INTEGER NOT NULL, due_at INTEGER NOT NULL, tries INTEGER NOT NULL, turn TEXT, speaking TEXT,
        cause TEXT, created_at INTEGER NOT NULL) STRICT;
      CREATE UNIQUE INDEX agent_prompts_by_id ON agent_prompts (session, id);
      CREATE INDEX agent_prompts_open ON agent_prompts (session, rank, n) WHERE state <> 'done';
      CREATE TABLE agent_questions (
        session TEXT NOT NULL REFERENCES agents (session) ON DELETE CASCADE, id TEXT NOT NULL, chat_id TEXT NOT NULL,
        prompt_id TEXT NOT NULL, text TEXT NOT NULL, options TEXT, asked_at INTEGER NOT NULL,
        PRIMARY KEY (session, id)) STRICT, WITHOUT ROWID;`,
  },
]

/** What an agent in a fork is to be told with the next prompt of a channel: what was said before. */
export const recitalMigrations: readonly Migration[] = [
  { name: "agent-channels.recital", sql: "ALTER TABLE agent_channels ADD COLUMN recital TEXT;" },
]

/** What an agent is to find, and what it found: null until it has been made ready. */
export const provisionMigrations: readonly Migration[] = [
  {
    name: "agents.provision",
    sql: "ALTER TABLE agents ADD COLUMN wishes TEXT; ALTER TABLE agents ADD COLUMN provisioned TEXT;",
  },
]
