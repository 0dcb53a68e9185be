import type { Migration } from "@warren/base/sqlite/migrations.ts"

/** `state` is written before and after what it says, so that whatever was cut off is found. */
export const workspaceMigrations: readonly Migration[] = [
  {
    name: "workspaces",
    sql: `CREATE TABLE workspaces (
        name TEXT PRIMARY KEY, state TEXT NOT NULL CHECK (state IN ('making', 'ready', 'deleting')), created_at INTEGER NOT NULL,
        limit_bytes INTEGER NOT NULL, used_bytes INTEGER, measured_at INTEGER) STRICT, WITHOUT ROWID;
      CREATE TABLE workspace_holders (
        name TEXT NOT NULL REFERENCES workspaces (name) ON DELETE CASCADE, session_id TEXT NOT NULL,
        PRIMARY KEY (name, session_id)) STRICT, WITHOUT ROWID;
      CREATE INDEX workspace_holders_by_session ON workspace_holders (session_id);`,
  },
]
