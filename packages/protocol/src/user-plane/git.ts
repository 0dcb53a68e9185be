import { z } from "zod"
import { contract } from "../contract.ts"
import { BranchName } from "./provision.ts"

const id = z.string().min(1).max(128).meta({ description: "The session's id or its name." })
const folder = z
  .string()
  .min(1)
  .max(4_095)
  .optional()
  .meta({ description: "Where the repository is; where the agent works, or the session's own folder, unless said." })
const against = z
  .string()
  .regex(/^(?!-)(?!.*\.\.)[\w./+#@=~^-]{1,200}$/, "that is no commit, tag or branch")
  .default("head")
  .meta({
    description: "`head`: what is not committed. `base`: everything since it left the remote's main branch. Or a ref.",
  })

export const GitState = z
  .object({
    folder: z.string(),
    isRepository: z.boolean(),
    branch: z.string().optional(),
    commit: z.string().optional(),
    upstream: z.string().optional(),
    ahead: z.int().min(0).optional(),
    behind: z.int().min(0).optional(),
    isDirty: z.boolean(),
    changes: z.int().min(0).meta({ description: "Files that are not as they were committed." }),
    remote: z.string().optional().meta({ description: "The address of `origin`." }),
  })
  .meta({ id: "GitState" })
export type GitState = z.output<typeof GitState>

export const ChangedFile = z
  .object({
    path: z.string(),
    status: z.enum(["added", "modified", "deleted", "renamed", "copied", "type", "unmerged"]),
    from: z.string().optional().meta({ description: "What it was called before." }),
    additions: z.int().min(0).optional().meta({ description: "Lines; absent for what has none." }),
    deletions: z.int().min(0).optional(),
  })
  .meta({ id: "ChangedFile" })
export type ChangedFile = z.output<typeof ChangedFile>

export const changedFilesMax = 2_000
export const diffBytesMax = 256 * 1024

export const gitCalls = contract({
  "session.gitState": {
    since: 1,
    scope: "files:read",
    http: "GET /v1/sessions/{id}/git",
    doc: "How a repository in a session is: its branch, and whether something is not committed.",
    in: z.object({ id, folder }),
    out: GitState,
  },
  "session.changedFiles": {
    since: 1,
    scope: "files:read",
    http: "GET /v1/sessions/{id}/git/files",
    doc: "Which files of a repository in a session changed, new ones too.",
    in: z.object({ id, folder, against }),
    out: z.object({
      files: z.array(ChangedFile),
      isCut: z.boolean().meta({ description: `There are more than ${changedFilesMax}.` }),
    }),
    timeoutMs: 90_000,
  },
  "session.diff": {
    since: 1,
    scope: "files:read",
    http: "GET /v1/sessions/{id}/git/diff",
    doc: "What changed in a repository in a session, as git writes it, with new files.",
    in: z.object({
      ...{ id, folder, against },
      path: z.string().min(1).max(4_095).optional().meta({ description: "Only this file or folder of it." }),
    }),
    out: z.object({
      text: z.string(),
      isCut: z.boolean().meta({ description: `It is longer than ${diffBytesMax} bytes: ask for one path.` }),
    }),
    timeoutMs: 90_000,
  },
  "session.createPullRequest": {
    since: 1,
    scope: "exec",
    http: "POST /v1/sessions/{id}/git/pull-requests",
    doc: "Push the branch of a repository in a session and ask for it to be merged. The session needs the key `git:write` for the repository, which stays in the runner. Asked again, it answers with the one that is open.",
    in: z.object({
      ...{ id, folder },
      title: z.string().min(1).max(256),
      body: z.string().max(60_000).default(""),
      base: BranchName.optional().meta({ description: "Where it is to go; the remote's main branch unless said." }),
      isDraft: z.boolean().default(false),
    }),
    out: z.object({
      url: z.string(),
      number: z.int(),
      head: z.string(),
      base: z.string(),
      isNew: z.boolean(),
    }),
    timeoutMs: 180_000,
  },
})
