import { z } from "zod"
import { AgentStatus } from "../hub/words.ts"
import { WorkspaceName } from "./workspaces.ts"

/** What sessions are made of, as everybody sees it. */

export const SessionState = z
  .enum(["starting", "running", "paused", "hibernating", "hibernated", "restoring", "stopping", "stopped", "failed"])
  .meta({ id: "SessionState" })

export const EndReason = z.enum(["requested", "expired", "life", "idle", "died", "oom", "start", "lost"]).meta({
  id: "EndReason",
  description:
    "Why it does not run: asked for; unused for its time to live; past its longest life; idle; its sandbox died; killed for want of memory; it could not be started; its sandbox was gone when the runner came back.",
})

const name = z
  .string()
  .min(1)
  .max(63)
  .regex(/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/, "lower-case letters, digits and dashes")

export const SessionName = name.meta({ id: "SessionName", examples: ["fix-login-bug"] })

export const Labels = z
  .record(z.string().min(1).max(63), z.string().max(255))
  .refine((labels) => Object.keys(labels).length <= 32, "at most 32 labels")
  .meta({ id: "Labels", examples: [{ project: "website" }] })

export const Environment = z
  .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/), z.string().max(32 * 1024))
  .refine((env) => Object.keys(env).length <= 256, "at most 256 variables")
  .meta({ id: "Environment", examples: [{ NODE_ENV: "test" }] })

/** Less than what a sandbox writes to start at all. */
const diskBytesMin = 1024 * 1024

export const Limits = z
  .object({
    cpus: z.number().min(0.01).max(1024).meta({ description: "1 unless said." }),
    memoryBytes: z
      .int()
      .min(8 * 1024 * 1024)
      .max(2 ** 46)
      .meta({ description: "512 MiB unless said." }),
    pidsMax: z.int().min(8).max(1_000_000).meta({ description: "512 unless said." }),
    openFilesMax: z.int().min(64).max(1_048_576).meta({ description: "4096 unless said." }),
    diskBytes: z
      .int()
      .min(0)
      .max(2 ** 50)
      .refine((bytes) => bytes === 0 || bytes >= diskBytesMin, "0, or at least 1 MiB")
      .meta({ description: "Of everything it writes, 10 GiB unless said; at least 1 MiB; 0 asks for no limit." }),
    mayBeUnlimited: z.literal(true).optional().meta({
      description: "Where this machine cannot limit memory, cpu and processes: run without, instead of not at all.",
    }),
  })
  .meta({ id: "Limits" })

export const Network = z
  .discriminatedUnion("mode", [
    z.object({ mode: z.literal("none") }),
    z.object({
      mode: z.literal("proxy"),
      access: z.enum(["list", "all-public"]).default("list").meta({
        description: "Only what `allow` lists, or every public host on the ports 80 and 443 as well.",
      }),
      allow: z
        .array(z.string().max(300))
        .max(512)
        .default([])
        .meta({
          description: "Hosts it may reach: `example.com`, `*.example.com`, with `:port` if not 80 or 443.",
          examples: [["github.com", "*.npmjs.org"]],
        }),
    }),
    z.object({ mode: z.literal("bridge") }),
    z.object({ mode: z.literal("host") }),
  ])
  .meta({
    id: "Network",
    description:
      "What it reaches: itself; allowed hosts through the proxy; everything public; whatever the host reaches.",
  })

export const KeyUse = z
  .object({
    scope: z.enum(["llm:anthropic", "llm:openai", "git:read", "git:write"]),
    destination: z
      .string()
      .max(300)
      .optional()
      .meta({
        description: "A git host, or a repository on it; an LLM's own host when absent.",
        examples: ["github.com/acme/widgets"],
      }),
  })
  .meta({ id: "KeyUse", description: "A key its programs may use through the broker without ever seeing it." })

const Milliseconds = z
  .int()
  .min(1_000)
  .max(365 * 24 * 3600_000)

export const IdlePolicy = z
  .object({
    afterMs: Milliseconds,
    action: z.enum(["pause", "hibernate", "stop"]).default("hibernate"),
  })
  .meta({
    id: "IdlePolicy",
    description: "Idle: nothing runs, nobody is attached, no agent works, and nothing inside asks to stay awake.",
  })

export const LifeAction = z
  .enum(["stop", "pause", "hibernate"])
  .meta({ id: "LifeAction", description: "What happens at the end of `lifeMs`: its end, unless said." })

/** What a session is asked to be. */
export const sessionWishes = {
  name: SessionName.optional().meta({ description: "One is made up when there is none." }),
  labels: Labels.default({}),
  driver: z
    .enum(["oci", "process"])
    .optional()
    .meta({ description: "How its sandbox is made; the runner's own choice when absent." }),
  image: z
    .string()
    .min(1)
    .max(512)
    .optional()
    .meta({ description: "The runner's own choice when absent: `host` unless it was told otherwise." }),
  from: z
    .string()
    .max(64)
    .optional()
    .meta({ description: "A snapshot to start from; image and limits are then those of the snapshot unless given." }),
  profile: z.enum(["dev", "strict"]).default("dev"),
  limits: Limits.partial().default({}),
  network: Network.optional().meta({
    description: "A proxy that allows nothing when absent; none where the driver has no proxy.",
  }),
  workspace: WorkspaceName.optional().meta({
    description: "Mounted at /workspace; made when there is none of that name.",
  }),
  env: Environment.default({}),
  secrets: z
    .array(z.string().max(128))
    .max(64)
    .default([])
    .meta({ description: "Names of secrets given to its programs as variables: they can then be read inside." }),
  keys: z.array(KeyUse).max(32).default([]),
  ttlMs: Milliseconds.optional().meta({
    description: "Ends this long after it was last used; every use starts the time again.",
  }),
  lifeMs: Milliseconds.optional().meta({ description: "Ends this long after it was made, used or not." }),
  lifeAction: LifeAction.optional(),
  idle: IdlePolicy.optional(),
  snapshots: z
    .object({
      everyMs: z
        .int()
        .min(10_000)
        .max(7 * 24 * 3600_000),
      keep: z.int().min(1).max(100).default(5),
    })
    .optional()
    .meta({ description: "Snapshots made by themselves while it runs; the oldest go." }),
}

export const Session = z
  .object({
    id: z.string().meta({ examples: ["ses_0123456789abcdefghjk"] }),
    name: z.string(),
    key: z.string().optional(),
    labels: z.record(z.string(), z.string()),
    state: SessionState,
    reason: EndReason.optional().meta({ description: "Why it does not run." }),
    detail: z.string().optional().meta({ description: "The same in words." }),
    driver: z.string(),
    image: z.string(),
    profile: z.enum(["dev", "strict"]),
    limits: Limits,
    network: Network,
    workspace: z.string().optional(),
    env: z.array(z.string()).meta({ description: "Names of its variables." }),
    secrets: z.array(z.string()),
    keys: z.array(KeyUse),
    ttlMs: z.int().optional(),
    lifeMs: z.int().optional(),
    lifeAction: LifeAction.optional(),
    idle: IdlePolicy.optional(),
    snapshots: z.object({ everyMs: z.int(), keep: z.int() }).optional(),
    createdAt: z.iso.datetime(),
    usedAt: z.iso.datetime(),
    expiresAt: z.iso.datetime().optional(),
    parent: z.string().optional().meta({ description: "The session it was forked from." }),
    acquireSource: z.enum(["pool", "cold"]).meta({ description: "Whether its sandbox was waiting ready." }),
    acquireMs: z.number().meta({ description: "How long it took to have its sandbox." }),
    agent: z
      .object({
        adapter: z.string(),
        status: AgentStatus,
        questions: z.int().min(0).meta({ description: "How many of its questions wait for an answer." }),
      })
      .optional()
      .meta({ description: "Its agent, if it has one; `agent.get` tells more." }),
  })
  .meta({ id: "Session", description: "A unit of work: a sandbox, perhaps a workspace, and a life." })

export const Snapshot = z
  .object({
    id: z.string().meta({ examples: ["snp_0123456789abcdefghjk"] }),
    session: z.string(),
    name: z.string().optional(),
    image: z.string(),
    createdAt: z.iso.datetime(),
    isAutomatic: z.boolean(),
    parent: z
      .string()
      .optional()
      .meta({ description: "The snapshot its session was last started from or rolled back to." }),
  })
  .meta({ id: "Snapshot", description: "What a sandbox had written, frozen; others can start from it." })
