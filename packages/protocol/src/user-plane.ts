import { z } from "zod"
import { contract, type Handlers, type Scoped } from "./contract.ts"
import { accessCalls } from "./user-plane/access.ts"
import { agentCalls } from "./user-plane/agents.ts"
import { Degraded } from "./degraded.ts"
import { chatCalls } from "./user-plane/chat.ts"
import { compareCalls } from "./user-plane/compare.ts"
import { databaseCalls } from "./user-plane/database.ts"
import { fileCalls } from "./user-plane/files.ts"
import { gitCalls } from "./user-plane/git.ts"
import { imageCalls } from "./user-plane/images.ts"
import { memoryCalls } from "./user-plane/memory.ts"
import { processCalls } from "./user-plane/processes.ts"
import { secretCalls } from "./user-plane/secrets.ts"
import { browserCalls, serviceCalls } from "./user-plane/services.ts"
import { sessionCalls } from "./user-plane/sessions.ts"
import { terminalCalls } from "./user-plane/terminals.ts"
import { tunnelCalls } from "./user-plane/tunnels.ts"
import { workspaceCalls } from "./user-plane/workspaces.ts"

export const Health = z
  .object({
    status: z.enum(["ok", "degraded", "stopping"]),
    user: z.string().meta({ description: "The Linux account this runner works for." }),
    version: z.string(),
    build: z.string(),
    pid: z.int(),
    startedAt: z.iso.datetime(),
    driver: z.string().meta({ description: "How its sandboxes are made." }),
    tools: z
      .object({ shell: z.boolean(), browser: z.boolean() })
      .meta({ description: "What agents may be given here." }),
    sessions: z.object({ running: z.int(), all: z.int() }),
    found: z
      .object({
        adopted: z.int(),
        asleep: z.int(),
        lost: z.int(),
        forgotten: z.int(),
        waiting: z.int(),
        removed: z.int(),
      })
      .meta({ description: "What the runner before it had left." }),
    degraded: z.array(Degraded),
  })
  .meta({ id: "Health", description: "What a runner knows about itself." })

export const LogEntry = z
  .object({
    time: z.iso.datetime(),
    level: z.enum(["debug", "info", "warn", "error"]),
    event: z.string(),
    fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
  })
  .meta({ id: "LogEntry", description: "One thing that happened." })

const runnerCalls = contract({
  "health.check": {
    since: 1,
    scope: "runner:read",
    http: "GET /v1/health",
    doc: "Ask a runner how it is.",
    in: z.object({}),
    out: Health,
    timeoutMs: 5_000,
  },
  "logs.read": {
    since: 1,
    scope: "runner:read",
    http: "GET /v1/logs",
    doc: "Read the newest lines of the runner's log.",
    in: z.object({
      limit: z.coerce.number().int().min(1).max(1_000).default(100),
      session: z.string().max(128).optional().meta({ description: "Only what is about this session (its id)." }),
    }),
    out: z.object({ entries: z.array(z.object({ seq: z.int(), entry: LogEntry })) }),
  },
  "logs.follow": {
    since: 1,
    scope: "runner:read",
    http: "GET /v1/logs/follow",
    doc: "Every log line after number `after`, then every line that follows.",
    in: z.object({ after: z.coerce.number().int().min(0).default(0) }),
    each: LogEntry,
  },
  "runner.shutdown": {
    since: 1,
    scope: "runner:write",
    doc: "Stop the runner in order. Running sandboxes go on.",
    in: z.object({}),
    out: z.object({ isStopping: z.boolean() }),
  },
})

/** Everything of the user plane but what only the process that runs it can say: its health, its log, who asked, its end. */
export const dataCalls = contract({
  ...sessionCalls,
  ...processCalls,
  ...fileCalls,
  ...imageCalls,
  ...workspaceCalls,
  ...secretCalls,
  ...memoryCalls,
  ...chatCalls,
  ...agentCalls,
  ...gitCalls,
  ...compareCalls,
  ...databaseCalls,
  ...tunnelCalls,
  ...terminalCalls,
  ...serviceCalls,
  ...browserCalls,
})

/** What a runner answers: the user plane. */
export const userPlane = contract({ ...runnerCalls, ...dataCalls, ...accessCalls }) satisfies Scoped

export type UserPlane = Handlers<typeof userPlane>
