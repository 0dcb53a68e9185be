import type { Migration } from "@warren/base/sqlite/migrations.ts"

/**
 * Who may, and nothing of what anybody has. Every text has a length it cannot exceed and most have a shape: there is no
 * column that a prompt, a file or a note would fit into. A test holds every column against a list.
 */
export const migrations: readonly Migration[] = [
  {
    name: "who may",
    sql: `
CREATE TABLE users (
  id TEXT NOT NULL PRIMARY KEY CHECK (length(id) <= 32),
  name TEXT NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 32),
  role TEXT NOT NULL CHECK (role IN ('admin', 'member')),
  state TEXT NOT NULL CHECK (state IN ('active', 'disabled')),
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE credentials (
  user_id TEXT NOT NULL REFERENCES users(id) ON DELETE CASCADE CHECK (length(user_id) <= 32),
  kind TEXT NOT NULL CHECK (kind IN ('password', 'oidc')),
  subject TEXT NOT NULL CHECK (length(subject) <= 64),
  verifier TEXT NOT NULL CHECK (length(verifier) <= 256),
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (user_id, kind)
) STRICT;
CREATE UNIQUE INDEX credentials_by_subject ON credentials (kind, subject) WHERE kind = 'oidc';

CREATE TABLE tokens (
  id TEXT NOT NULL PRIMARY KEY CHECK (length(id) <= 32),
  user_id TEXT NOT NULL REFERENCES users(id) ON DELETE CASCADE CHECK (length(user_id) <= 32),
  hash TEXT NOT NULL UNIQUE CHECK (length(hash) = 64),
  label TEXT NOT NULL CHECK (length(label) <= 40),
  scopes TEXT NOT NULL CHECK (length(scopes) <= 512),
  name_prefix TEXT CHECK (length(name_prefix) <= 48),
  sessions_max INTEGER,
  requests_per_minute INTEGER,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  used_at INTEGER
) STRICT;
CREATE INDEX tokens_by_user ON tokens (user_id);

CREATE TABLE sign_ins (
  id TEXT NOT NULL PRIMARY KEY CHECK (length(id) <= 32),
  user_id TEXT NOT NULL REFERENCES users(id) ON DELETE CASCADE CHECK (length(user_id) <= 32),
  hash TEXT NOT NULL UNIQUE CHECK (length(hash) = 64),
  method TEXT NOT NULL CHECK (method IN ('password', 'link', 'oidc')),
  address TEXT NOT NULL CHECK (length(address) <= 64),
  created_at INTEGER NOT NULL,
  used_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sign_ins_by_user ON sign_ins (user_id);

CREATE TABLE invites (
  id TEXT NOT NULL PRIMARY KEY CHECK (length(id) <= 32),
  hash TEXT NOT NULL UNIQUE CHECK (length(hash) = 64),
  role TEXT NOT NULL CHECK (role IN ('admin', 'member')),
  name TEXT CHECK (length(name) <= 32),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  used_at INTEGER
) STRICT;

CREATE TABLE quotas (
  user_id TEXT NOT NULL PRIMARY KEY REFERENCES users(id) ON DELETE CASCADE CHECK (length(user_id) <= 32),
  sessions_max INTEGER,
  requests_per_minute INTEGER
) STRICT;

CREATE TABLE routes (
  user_id TEXT NOT NULL PRIMARY KEY REFERENCES users(id) ON DELETE CASCADE CHECK (length(user_id) <= 32),
  socket TEXT NOT NULL CHECK (length(socket) <= 107),
  uid INTEGER NOT NULL
) STRICT;

CREATE TABLE audit (
  seq INTEGER NOT NULL PRIMARY KEY,
  time INTEGER NOT NULL,
  user_id TEXT NOT NULL CHECK (length(user_id) <= 32),
  via TEXT NOT NULL CHECK (length(via) <= 32),
  action TEXT NOT NULL CHECK (length(action) <= 64),
  subject TEXT NOT NULL CHECK (length(subject) <= 64),
  address TEXT NOT NULL CHECK (length(address) <= 64),
  request TEXT NOT NULL CHECK (length(request) <= 64),
  result TEXT NOT NULL CHECK (length(result) <= 32),
  hash TEXT NOT NULL CHECK (length(hash) = 64)
) STRICT;

CREATE TABLE audit_checkpoints (
  seq INTEGER NOT NULL PRIMARY KEY,
  hash TEXT NOT NULL CHECK (length(hash) = 64),
  time INTEGER NOT NULL,
  signature TEXT NOT NULL CHECK (length(signature) <= 128)
) STRICT;
`,
  },
  {
    name: "whose a session is",
    sql: `
CREATE TABLE session_owners (
  session TEXT NOT NULL PRIMARY KEY CHECK (length(session) <= 32),
  user_id TEXT NOT NULL REFERENCES users(id) ON DELETE CASCADE CHECK (length(user_id) <= 32),
  seen_at INTEGER NOT NULL
) STRICT;
CREATE INDEX session_owners_by_user ON session_owners (user_id, seen_at);
`,
  },
  {
    // The answer is sealed by the control plane itself: nobody else can put anything there.
    name: "made with a key",
    sql: `
CREATE TABLE made (
  user_id TEXT NOT NULL REFERENCES users(id) ON DELETE CASCADE CHECK (length(user_id) <= 32),
  key TEXT NOT NULL CHECK (length(key) = 64),
  asked TEXT NOT NULL CHECK (length(asked) = 64),
  answer TEXT NOT NULL CHECK (length(answer) <= 4096),
  at INTEGER NOT NULL,
  PRIMARY KEY (user_id, key)
) STRICT;
CREATE INDEX made_by_time ON made (at);
`,
  },
  {
    name: "who makes it",
    sql: "ALTER TABLE made ADD COLUMN maker TEXT NOT NULL DEFAULT '' CHECK (length(maker) <= 32);",
  },
]
