import { z } from "zod"
import { contract } from "../contract.ts"

const place = {
  session: z
    .string()
    .min(1)
    .max(128)
    .meta({ description: "Id or name of the session.", examples: ["fix-login-bug"] }),
  path: z
    .string()
    .min(1)
    .max(4095)
    .meta({ examples: ["/workspace/notes.md"] }),
}
const user = { user: z.string().min(1).max(64).optional() }

export const FileEntry = z
  .object({
    name: z.string().meta({ description: "What is not UTF-8 in it is replaced." }),
    path: z.string(),
    type: z.enum(["file", "dir", "symlink", "fifo", "socket", "char", "block"]),
    size: z.int(),
    mode: z.int(),
    uid: z.int(),
    gid: z.int(),
    mtimeMs: z.int(),
    target: z.string().optional(),
    metadata: z
      .record(z.string(), z.string())
      .optional()
      .meta({ description: "What is noted about it, if asked for." }),
  })
  .meta({ id: "FileEntry" })

const done = z.object({ ok: z.literal(true) })
const whole = z.coerce.number().int().min(0)
const flag = z.stringbool().or(z.boolean())

export const fileCalls = contract({
  "file.read": {
    since: 1,
    scope: "files:read",
    http: "GET /v1/sessions/{session}/files/content",
    body: "bytes",
    size: { call: "file.stat", field: "size" },
    doc: "The bytes of a file, or of a part of it.",
    in: z.object({ ...place, ...user, offset: whole.optional(), limit: whole.optional() }),
    up: z.never(),
    down: z.never(),
  },
  "file.write": {
    since: 1,
    scope: "files:write",
    http: "PUT /v1/sessions/{session}/files/content",
    body: "bytes",
    doc: "Write a file: nothing of it is seen until all of it is there.",
    in: z.object({
      ...place,
      ...user,
      mode: z.coerce.number().int().min(0).max(0o7777).optional(),
      parents: flag.default(true),
      append: flag.default(false),
      atomic: flag.default(true).meta({ description: "`false`: written where it is, piece by piece." }),
      owner: z
        .string()
        .regex(/^\d{1,10}:\d{1,10}$/)
        .optional()
        .meta({ description: "Whom it belongs to then, as `uid:gid`; for root to say." }),
    }),
    up: z.object({ op: z.literal("eof") }),
    down: z.object({ ev: z.literal("written"), bytes: z.int() }),
  },
  "file.list": {
    since: 1,
    scope: "files:read",
    http: "GET /v1/sessions/{session}/files",
    doc: "What is in a folder.",
    in: z.object({
      ...place,
      ...user,
      depth: z.coerce.number().int().min(1).max(64).default(1),
      limit: z.coerce.number().int().min(1).max(5_000).default(1_000),
      metadata: flag.default(false),
    }),
    out: z.object({ entries: z.array(FileEntry), truncated: z.boolean() }),
  },
  "file.stat": {
    since: 1,
    scope: "files:read",
    http: "GET /v1/sessions/{session}/files/stat",
    doc: "One entry.",
    in: z.object({
      ...place,
      ...user,
      follow: flag.default(true).meta({ description: "`false`: of a link itself, not of what it leads to." }),
      metadata: flag.default(false),
    }),
    out: FileEntry,
  },
  "file.mark": {
    since: 1,
    scope: "files:write",
    http: "POST /v1/sessions/{session}/files/metadata",
    doc: "Note something about a file, instead of what was noted before.",
    in: z.object({
      ...place,
      ...user,
      metadata: z
        .record(z.string().min(1).max(190), z.string().max(4096))
        .refine((all) => Object.keys(all).length <= 32, "at most 32")
        .meta({ examples: [{ author: "alice" }] }),
    }),
    out: done,
  },
  "file.mkdir": {
    since: 1,
    scope: "files:write",
    http: "POST /v1/sessions/{session}/files/folders",
    doc: "Make a folder.",
    in: z.object({ ...place, ...user, parents: z.boolean().default(true) }),
    out: done,
  },
  "file.move": {
    since: 1,
    scope: "files:write",
    http: "POST /v1/sessions/{session}/files/move",
    doc: "Rename or move.",
    in: z.object({ ...place, ...user, to: z.string().min(1).max(4095), overwrite: z.boolean().default(false) }),
    out: done,
  },
  "file.remove": {
    since: 1,
    scope: "files:write",
    http: "DELETE /v1/sessions/{session}/files",
    doc: "Remove a file, or a folder with everything in it.",
    in: z.object({ ...place, ...user, recursive: flag.default(false) }),
    out: done,
  },
  "file.watch": {
    since: 1,
    scope: "files:read",
    http: "GET /v1/sessions/{session}/files/watch",
    doc: "Changes in a folder as they happen; `resync` when some were lost.",
    in: z.object({
      ...place,
      ...user,
      recursive: flag.default(false),
      isAnnounced: flag
        .default(false)
        .meta({ description: "The first item is `ready`: from there on nothing is missed." }),
    }),
    each: z.object({
      kind: z.enum(["ready", "create", "write", "remove", "rename", "chmod"]),
      path: z.string(),
      to: z.string().optional(),
    }),
  },
})
