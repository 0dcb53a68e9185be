import { z } from "zod"
import { contract } from "../contract.ts"
import { page, pageInput } from "./page.ts"
import {
  Environment,
  IdlePolicy,
  KeyUse,
  Labels,
  LifeAction,
  Network,
  Session,
  SessionName,
  SessionState,
  sessionWishes,
  Snapshot,
} from "./session.ts"

/** An id, or a name: names are unique among the sessions that are not deleted. */
const which = {
  id: z
    .string()
    .min(1)
    .max(128)
    .meta({ description: "Its id or its name.", examples: ["fix-login-bug"] }),
}
const one = z.object(which)
const done = z.object({ ok: z.literal(true) })

export const SessionEvent = z
  .object({
    id: z.string(),
    event: z.enum(["created", "changed", "deleted"]),
    session: Session.optional().meta({ description: "As it is now; absent when it is gone." }),
  })
  .meta({ id: "SessionEvent" })

export const Stats = z
  .object({
    memoryBytes: z.number(),
    memoryPeakBytes: z.number(),
    cpuUs: z.number(),
    pids: z.number(),
    diskBytes: z.number(),
    receivedBytes: z.number(),
    sentBytes: z.number(),
    oomKills: z.number(),
    pidsRefused: z.number(),
  })
  .meta({ id: "Stats" })

export const Denial = z
  .object({
    at: z.iso.datetime(),
    host: z.string(),
    port: z.int(),
    reason: z.string(),
    detail: z.string().optional(),
  })
  .meta({ id: "Denial", description: "A request the egress proxy refused." })

export const sessionCalls = contract({
  "session.create": {
    since: 1,
    scope: "sessions:write",
    http: "POST /v1/sessions",
    makes: true,
    doc: "Start a session.",
    in: z.object({
      ...sessionWishes,
      key: z.string().min(1).max(256).optional().meta({ description: "Yours: no two sessions have the same." }),
    }),
    out: Session,
    timeoutMs: 60_000,
  },
  "session.getOrCreate": {
    since: 1,
    scope: "sessions:write",
    http: "PUT /v1/sessions/by-key/{key}",
    doc: "The session with this key; a new one when there is none. Called twice at once, both get the same.",
    in: z.object({ ...sessionWishes, key: z.string().min(1).max(256) }),
    out: z.object({ session: Session, isNew: z.boolean() }),
    timeoutMs: 60_000,
  },
  "session.get": {
    since: 1,
    scope: "sessions:read",
    http: "GET /v1/sessions/{id}",
    doc: "One session.",
    in: one,
    out: Session,
  },
  "session.list": {
    since: 1,
    scope: "sessions:read",
    http: "GET /v1/sessions",
    doc: "Sessions, the one made last first.",
    in: z.object({
      ...pageInput,
      state: z.union([SessionState, z.array(SessionState)]).optional(),
      label: z.string().max(320).optional().meta({ description: "`name=value`" }),
    }),
    out: page(Session).extend({
      eventSeq: z.int().optional().meta({ description: "`session.follow` after this number tells what changes next." }),
    }),
  },
  "session.update": {
    since: 1,
    scope: "sessions:write",
    http: "PATCH /v1/sessions/{id}",
    doc: "Change what can be changed while it lives.",
    in: z.object({
      ...which,
      name: SessionName.optional(),
      labels: Labels.optional(),
      env: Environment.optional(),
      ttlMs: sessionWishes.ttlMs.nullable(),
      lifeMs: sessionWishes.lifeMs.nullable().meta({
        description: "Counted from when it was made. More of it is what a session needs that was paused at its end.",
      }),
      lifeAction: LifeAction.optional(),
      idle: IdlePolicy.nullish(),
      network: Network.optional().meta({ description: "Only what the proxy allows can change while it runs." }),
      keys: z
        .array(KeyUse)
        .max(32)
        .refine(
          (keys) => keys.every((key) => !key.scope.startsWith("git:") || key.destination !== undefined),
          "git needs a destination",
        )
        .optional()
        .meta({ description: "Instead of those it has; leases for others end." }),
    }),
    out: Session,
  },
  "session.pause": {
    since: 1,
    scope: "sessions:write",
    http: "POST /v1/sessions/{id}/pause",
    doc: "Freeze everything in it.",
    in: one,
    out: Session,
  },
  "session.resume": {
    since: 1,
    scope: "sessions:write",
    http: "POST /v1/sessions/{id}/resume",
    doc: "Thaw it.",
    in: one,
    out: Session,
  },
  "session.hibernate": {
    since: 1,
    scope: "sessions:write",
    http: "POST /v1/sessions/{id}/hibernate",
    doc: "Stop its programs, keep its files; the next use wakes it.",
    in: one,
    out: Session,
    timeoutMs: 60_000,
  },
  "session.restore": {
    since: 1,
    scope: "sessions:write",
    http: "POST /v1/sessions/{id}/restore",
    doc: "Start a hibernated, stopped or failed session again, with its files.",
    in: one,
    out: Session,
    timeoutMs: 60_000,
  },
  "session.stop": {
    since: 1,
    scope: "sessions:write",
    http: "POST /v1/sessions/{id}/stop",
    doc: "End its programs. Its files stay until it is deleted; no use wakes it.",
    in: z.object({ ...which, graceMs: z.int().min(0).max(60_000).default(5_000) }),
    out: Session,
    timeoutMs: 90_000,
  },
  "session.delete": {
    since: 1,
    scope: "sessions:write",
    http: "DELETE /v1/sessions/{id}",
    doc: "End it and take everything away but its workspace.",
    in: one,
    out: done,
    timeoutMs: 60_000,
  },
  "session.fork": {
    since: 1,
    scope: "sessions:write",
    http: "POST /v1/sessions/{id}/fork",
    makes: true,
    doc: "New sessions with the files this one has now. Programs are not copied. With `turn`, each has the agent, too, and what was said up to there; and its files as they were then, where a snapshot has them.",
    in: z.object({
      ...which,
      count: z.int().min(1).max(100).default(1),
      name: SessionName.optional(),
      turn: z.string().min(1).max(64).optional().meta({
        description:
          "A message of the conversation with its agent: what was said up to the end of its turn goes along.",
      }),
    }),
    out: z.object({
      sessions: z.array(Session),
      files: z.enum(["now", "then"]).optional().meta({
        description: "With `turn`: whether the files are those of then, or those of now for want of a snapshot.",
      }),
    }),
    timeoutMs: 120_000,
  },
  "session.rollback": {
    since: 1,
    scope: "sessions:write",
    http: "POST /v1/sessions/{id}/rollback",
    doc: "Its files as they were in a snapshot; its programs end.",
    in: z.object({ ...which, snapshot: z.string().max(64) }),
    out: Session,
    timeoutMs: 60_000,
  },
  "session.keepAwake": {
    since: 1,
    scope: "sessions:write",
    http: "POST /v1/sessions/{id}/keep-awake",
    doc: "It does not count as idle for this long.",
    in: z.object({
      ...which,
      ms: z
        .int()
        .min(0)
        .max(24 * 3600_000),
    }),
    out: z.object({ awakeUntil: z.iso.datetime() }),
  },
  "session.stats": {
    since: 1,
    scope: "sessions:read",
    http: "GET /v1/sessions/{id}/stats",
    doc: "What it uses now.",
    in: one,
    out: Stats,
  },
  "session.posture": {
    since: 1,
    scope: "sessions:read",
    http: "GET /v1/sessions/{id}/posture",
    doc: "What is measured about its isolation.",
    in: one,
    out: z.looseObject({ measuredAt: z.string(), degraded: z.array(z.string()) }).meta({ id: "Posture" }),
  },
  "session.denials": {
    since: 1,
    scope: "sessions:read",
    http: "GET /v1/sessions/{id}/denials",
    doc: "What its egress proxy refused, the newest last.",
    in: z.object({ ...which, after: z.coerce.number().int().min(0).default(0) }),
    out: z.object({ denials: z.array(z.object({ seq: z.int(), denial: Denial })) }),
  },
  "session.follow": {
    since: 1,
    scope: "sessions:read",
    http: "GET /v1/sessions/events",
    doc: "Every change of every session.",
    in: z.object({ after: z.coerce.number().int().min(0).default(0) }),
    each: SessionEvent,
  },
  "snapshot.create": {
    since: 1,
    scope: "sessions:write",
    http: "POST /v1/sessions/{session}/snapshots",
    makes: true,
    doc: "Freeze what a session has written; it goes on.",
    in: z.object({ session: z.string().max(128), name: SessionName.optional() }),
    out: Snapshot,
    timeoutMs: 120_000,
  },
  "snapshot.list": {
    since: 1,
    scope: "sessions:read",
    http: "GET /v1/snapshots",
    doc: "Snapshots, the newest first.",
    in: z.object({ ...pageInput, session: z.string().max(128).optional() }),
    out: page(Snapshot),
  },
  "snapshot.delete": {
    since: 1,
    scope: "sessions:write",
    http: "DELETE /v1/snapshots/{id}",
    doc: "Take a snapshot away; sessions that started from it go on.",
    in: z.object({ id: z.string().max(64) }),
    out: done,
  },
})
