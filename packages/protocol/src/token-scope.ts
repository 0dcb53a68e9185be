import { z } from "zod"

/** What a token can be allowed to do. Each call of a public contract names one of these. */
export const tokenScopes = {
  "sessions:read": "See sessions, what they use and their snapshots.",
  "sessions:write": "Make, change, fork, stop and delete sessions and snapshots.",
  exec: "Run programs and shells in sessions, and read what they print.",
  ports: "Reach what listens inside sessions, through the gateway too.",
  "files:read": "Read files in sessions.",
  "files:write": "Change files in sessions.",
  "workspaces:read": "See workspaces and read their files.",
  "workspaces:write": "Make, change and delete workspaces.",
  "images:read": "See images and pools.",
  "images:write": "Pull, build, tag and delete images.",
  "secrets:read": "See the names of secrets.",
  "secrets:write": "Set and delete secrets.",
  "memories:read": "Read and search memories.",
  "memories:write": "Add and delete memories.",
  "chats:read": "Read chats.",
  "chats:write": "Write in chats.",
  "database:read": "Query the user's own database.",
  "database:write": "Change the user's own database.",
  "runner:read": "See how the runner is, and its log.",
  "runner:write": "Stop the runner.",
  "access:read": "Read who has asked for what.",
  "account:read": "See who one is, one's tokens and sign-ins.",
  "account:write": "Make and revoke tokens, end sign-ins, change the password.",
  "metrics:read": "Read the control plane's metrics.",
  admin: "Manage users, invites, quotas and the audit log; its owner has to be an admin.",
} as const

export const TokenScope = z
  .enum(Object.keys(tokenScopes) as [keyof typeof tokenScopes, ...(keyof typeof tokenScopes)[]])
  .meta({ id: "TokenScope", description: "One thing a token can be allowed to do.", examples: ["exec"] })
export type TokenScope = z.output<typeof TokenScope>

/** What a call needs; `open` ones are for those who have not said who they are yet. */
export type CallScope = TokenScope | "open"

/** What a token may do unless its maker says otherwise: everything but to rule over accounts. */
export const defaultScopes: readonly TokenScope[] = TokenScope.options.filter(
  (scope) => scope !== "admin" && scope !== "account:write" && scope !== "metrics:read",
)

/** The same for one that sees only some sessions: what is about those, and nothing of its owner's besides. */
export const boundScopes: readonly TokenScope[] = [
  ...(["sessions:read", "sessions:write", "exec", "ports", "files:read", "files:write"] as const),
  ...(["images:read", "chats:read", "chats:write", "runner:read", "account:read"] as const),
]
