import { z } from "zod"
import { contract } from "../contract.ts"
import { page, pageInput } from "./page.ts"

const pathCharsMax = 4_096
const limitBytesMax = 2 ** 50
/** Less than what a disk needs to hold a folder at all cannot be kept to. */
const limitBytesMin = 1024 * 1024

export const WorkspaceName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/)
  .meta({ id: "WorkspaceName", description: "1 to 63 of a-z, 0-9 and -.", examples: ["my-project"] })

export const Workspace = z
  .object({
    name: WorkspaceName,
    createdAt: z.iso.datetime(),
    limitBytes: z.int().min(0).meta({ description: "How much it may hold; 0 is no limit." }),
    limit: z
      .enum(["disk", "api", "none"])
      .meta({ description: "Who holds to it: the disk itself, only what is written through this API, or nobody." }),
    usedBytes: z.int().min(0).optional().meta({ description: "As last measured." }),
    measuredAt: z.iso.datetime().optional(),
    holders: z.array(z.string()).meta({ description: "Sessions it is mounted in." }),
  })
  .meta({ id: "Workspace", description: "A named folder that outlives sandboxes." })

const Path = z
  .string()
  .max(pathCharsMax)
  .meta({ description: "From the top of the workspace, names joined by `/`.", examples: ["src/main.ts"] })

export const WorkspaceEntry = z
  .object({
    path: z.string(),
    name: z.string(),
    kind: z.enum(["file", "folder", "link", "other"]),
    sizeBytes: z.int().min(0),
    modifiedAt: z.iso.datetime(),
    mode: z.int(),
    target: z.string().optional().meta({ description: "Where a link points. It is never followed." }),
    etag: z.string().meta({ description: "Changes when the content does; for `ifMatch` on a write." }),
  })
  .meta({ id: "WorkspaceEntry", description: "A file, folder or link in a workspace." })

export const workspaceCalls = contract({
  "workspace.create": {
    since: 1,
    scope: "workspaces:write",
    http: "POST /v1/workspaces",
    makes: true,
    doc: "Make a workspace.",
    in: z.object({
      name: WorkspaceName,
      limitBytes: z
        .int()
        .min(0)
        .max(limitBytesMax)
        .refine((bytes) => bytes === 0 || bytes >= limitBytesMin, "0, or at least 1 MiB")
        .optional()
        .meta({ description: "At least 1 MiB; 0 asks for no limit." }),
    }),
    out: Workspace,
  },
  "workspace.list": {
    since: 1,
    scope: "workspaces:read",
    http: "GET /v1/workspaces",
    doc: "List workspaces by name, with their sizes as last measured.",
    in: z.object(pageInput),
    out: page(Workspace),
  },
  "workspace.get": {
    since: 1,
    scope: "workspaces:read",
    http: "GET /v1/workspaces/{name}",
    doc: "Read one workspace.",
    in: z.object({ name: WorkspaceName }),
    out: Workspace,
  },
  "workspace.usage": {
    since: 1,
    scope: "workspaces:read",
    http: "GET /v1/workspaces/{name}/usage",
    doc: "Measure a workspace now.",
    in: z.object({ name: WorkspaceName }),
    out: Workspace,
    timeoutMs: 60_000,
  },
  "workspace.delete": {
    since: 1,
    scope: "workspaces:write",
    http: "DELETE /v1/workspaces/{name}",
    doc: "Delete a workspace with everything in it. Refused while a session has it, unless forced.",
    in: z.object({ name: WorkspaceName, force: z.stringbool().or(z.boolean()).default(false) }),
    out: z.object({ isDeleted: z.boolean() }),
    timeoutMs: 120_000,
  },
  "workspace.files": {
    since: 1,
    scope: "workspaces:read",
    http: "GET /v1/workspaces/{name}/files",
    doc: "What lies in a folder of a workspace, by name.",
    in: z.object({ ...pageInput, name: WorkspaceName, path: Path.default("") }),
    out: page(WorkspaceEntry),
  },
  "workspace.stat": {
    since: 1,
    scope: "workspaces:read",
    http: "GET /v1/workspaces/{name}/stat",
    doc: "What one path of a workspace is.",
    in: z.object({ name: WorkspaceName, path: Path }),
    out: WorkspaceEntry,
  },
  "workspace.mkdir": {
    since: 1,
    scope: "workspaces:write",
    http: "POST /v1/workspaces/{name}/folders",
    doc: "Make a folder, and those above it that are missing. One that is there is fine.",
    in: z.object({ name: WorkspaceName, path: Path }),
    out: WorkspaceEntry,
  },
  "workspace.move": {
    since: 1,
    scope: "workspaces:write",
    http: "POST /v1/workspaces/{name}/move",
    doc: "Move a file, folder or link within a workspace.",
    in: z.object({ name: WorkspaceName, from: Path, to: Path, replace: z.boolean().default(false) }),
    out: WorkspaceEntry,
  },
  "workspace.remove": {
    since: 1,
    scope: "workspaces:write",
    http: "DELETE /v1/workspaces/{name}/files",
    doc: "Remove a file or a link, or a folder with everything in it if `recursive`.",
    in: z.object({ name: WorkspaceName, path: Path, recursive: z.stringbool().or(z.boolean()).default(false) }),
    out: z.object({ isRemoved: z.boolean() }),
    timeoutMs: 120_000,
  },
  "workspace.read": {
    since: 1,
    scope: "workspaces:read",
    http: "GET /v1/workspaces/{name}/content",
    body: "bytes",
    size: { call: "workspace.stat", field: "sizeBytes" },
    doc: "The bytes of a file, or of a part of it.",
    in: z.object({
      name: WorkspaceName,
      path: Path,
      offset: z.coerce.number().int().min(0).optional(),
      limit: z.coerce.number().int().min(0).optional(),
    }),
    up: z.never(),
    down: z.never(),
  },
  "workspace.write": {
    since: 1,
    scope: "workspaces:write",
    http: "PUT /v1/workspaces/{name}/content",
    body: "bytes",
    doc: "Write a file: nothing of it is seen until all of it is there. The last writer wins, unless `ifMatch` says which version it replaces.",
    in: z.object({
      name: WorkspaceName,
      path: Path,
      mode: z.coerce.number().int().min(0).max(0o777).optional(),
      ifMatch: z.string().max(128).optional().meta({ description: "Only over the version with this etag." }),
      ifNew: z.stringbool().or(z.boolean()).default(false).meta({ description: "Only where nothing is." }),
    }),
    up: z.object({ op: z.literal("eof") }),
    down: z.object({ ev: z.literal("written"), entry: WorkspaceEntry }),
  },
})
