import { z } from "zod"
import { ProcessTruth } from "./messages.ts"

const Seq = z.int().min(0)

/** First on every connection, from the supervisor and then from the hub: which link this is, and what of it has arrived. */
export const Resume = z.object({
  type: z.literal("resume"),
  link: z.string().min(1).max(64),
  ack: Seq,
  truth: ProcessTruth.optional(),
})
export type Resume = z.output<typeof Resume>
/** Every 30 s from the supervisor; a hub that hears none for a while looks whether it is there. */
export const Ping = z.object({ type: z.literal("ping"), ack: Seq, truth: ProcessTruth.optional() })
export const Pong = z.object({ type: z.literal("pong"), ack: Seq })
/** When there is nothing else to say. */
export const Ack = z.object({ type: z.literal("ack"), ack: Seq })
/** What something that means nothing is answered with. It was taken as number `of`, and has no other effect. */
export const Refused = z.object({
  type: z.literal("refused"),
  ack: Seq,
  of: Seq,
  code: z.enum(["invalid", "unsupported"]),
  message: z.string(),
})
export const Control = z.discriminatedUnion("type", [Resume, Ping, Pong, Ack, Refused])
export type Control = z.output<typeof Control>

/** What is numbered: any message of the direction's vocabulary, with these two beside its own fields. */
export const Numbers = z.object({ seq: z.int().min(1), ack: Seq })

export const hubLimits = {
  /** One WebSocket message. */
  frameBytesMax: 1024 * 1024,
  /** Sent and not acknowledged: more waits until some is. */
  flightMessages: 256,
  flightBytes: 1024 * 1024,
  /** What a supervisor keeps that it could not deliver; when it is full, the agent is held back. */
  keptMessages: 10_000,
  keptBytes: 16 * 1024 * 1024,
  pingMs: 30_000,
  /** No word for this long: the connection is not one. */
  silenceMs: 75_000,
  /** An acknowledgement goes out at the latest after so many messages. */
  ackEvery: 32,
  resumeMs: 15_000,
  backoffMs: { baseMs: 200, capMs: 30_000 },
} as const

export const replaced = { code: 1000, reason: "Replaced by new runner connection" } as const
