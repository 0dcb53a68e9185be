import { z } from "zod"
import { requestKeyCharsMax } from "../contract.ts"
import { FaultData } from "../fault.ts"
import { statementLimits } from "../statement.ts"

/** The version this code speaks. A peer that speaks an older one is answered in the older one. */
export const rpcVersion = 1

export const rpcLimits = {
  /** Calls and feeds a server works on at once for one connection; a client queues what is over it. */
  inFlightMax: 512,
  /** Calls one client may have waiting; one more is refused. */
  queuedMax: 65_536,
  /** Feed items a client keeps for a reader that is slow; then the feed ends with `resync`. */
  feedItemsMax: 1_024,
  feedBytesMax: 8 * 1024 * 1024,
  /** How long a client waits for the peer to say that cancelled work has stopped. */
  cancelMs: 2_000,
  helloMs: 10_000,
  /** Characters of a text in one message: as JSON a character takes six bytes at most. */
  pieceChars: 64 * 1024,
  /** How often a caller that is held back is told so. */
  heldMs: 5_000,
} as const

const RequestId = z.int().min(1)
/** Signed by the control plane: for whom it asks. Those who own the socket need none. */
const statement = z.string().max(statementLimits.charsMax).optional()

/** The W3C's `traceparent` of what this is a part of. */
const trace = z.string().max(64).optional()

export const Hello = z.object({ hello: z.object({ version: z.int().min(1), name: z.string().max(256).default("") }) })
export const Welcome = z.object({
  welcome: z.object({ version: z.int().min(1), build: z.string().max(256), inFlightMax: z.int().min(1) }),
})

export const Request = z.object({
  id: RequestId,
  call: z.string().max(128),
  in: z.record(z.string(), z.unknown()),
  statement,
  trace,
  /** The caller's own name for it: asked again with the same one, nothing is made twice. */
  key: z.string().min(1).max(requestKeyCharsMax).optional(),
})
/** A stream has its connection to itself: after this, nothing else is asked on it. */
export const Open = z.object({
  id: RequestId,
  open: z.string().max(128),
  in: z.record(z.string(), z.unknown()),
  statement,
  trace,
})
export const Cancel = z.object({ id: RequestId, cancel: z.literal(true) })

/** `id` 0 is the connection itself: what was sent could not be tied to a request. */
export const connectionId = 0
const AnswerId = z.int().min(connectionId)
export const Out = z.object({ id: AnswerId, out: z.unknown() })
export const Failed = z.object({ id: AnswerId, fault: FaultData })
export const FeedItem = z.object({ id: AnswerId, seq: z.int().min(0), item: z.unknown() })
export const FeedEnd = z.object({ id: AnswerId, end: z.literal(true) })
export const Opened = z.object({ id: AnswerId, opened: z.literal(true) })
/** A message of a stream, in either direction; its bytes are stream frames. */
export const Say = z.object({ id: AnswerId, say: z.unknown() })
/** What a stream came to. Texts too long for it came before, as the items of a feed do. */
export const CollectedResult = z.record(z.string(), z.unknown())
export const Texts = z.record(z.string(), z.string())
/** Nothing to act on: what the caller has sent is waiting to be taken. */
export const Held = z.object({ id: AnswerId, held: z.literal(true) })
