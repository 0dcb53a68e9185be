import { isUtf8 } from "node:buffer"
import { Fault } from "./fault.ts"

/**
 * Frames: `u32 big-endian length` + body. A body that begins with `{` is JSON; any other first byte is a stream tag and
 * the rest is raw bytes.
 */
export const frameLimits = {
  jsonBytesMax: 1024 * 1024,
  streamBytesMax: 256 * 1024,
  /** Deeper JSON than this is nonsense; V8 would parse five million levels and then choke on its own result. */
  jsonDepthMax: 64,
} as const

export const streamTags = { stdin: 1, stdout: 2, stderr: 3, raw: 4 } as const
export type StreamTag = (typeof streamTags)[keyof typeof streamTags]

const headerBytes = 4
const openBrace = 0x7b
const lastTag = 4
/** The least that is reserved for a frame that comes in pieces; it doubles as they come. */
const leastKeptBytes = 256
const nothing = Buffer.alloc(0)

export function encodeJson(value: object): Buffer {
  const text = JSON.stringify(value)
  const length = Buffer.byteLength(text)
  if (length > frameLimits.jsonBytesMax) {
    throw new Fault("limit", `a message of ${length} bytes is over the limit of ${frameLimits.jsonBytesMax}`)
  }
  const frame = Buffer.allocUnsafe(headerBytes + length)
  frame.writeUInt32BE(length, 0)
  frame.write(text, headerBytes)
  return frame
}

/** The five bytes before `length` raw bytes, so that the bytes themselves need no copy. */
export function streamHeader(tag: StreamTag, length: number): Buffer {
  if (length + 1 > frameLimits.streamBytesMax) throw new Fault("limit", "a stream frame is too large")
  const header = Buffer.allocUnsafe(headerBytes + 1)
  header.writeUInt32BE(length + 1, 0)
  header[headerBytes] = tag
  return header
}

export function encodeStream(tag: StreamTag, bytes: Uint8Array): Buffer {
  return Buffer.concat([streamHeader(tag, bytes.length), bytes])
}

export function isJson(body: Buffer): boolean {
  return body[0] === openBrace
}

/** The object in a JSON body. Anything that is not valid UTF-8, valid JSON and shallow is `invalid`. */
export function decodeJson(body: Buffer): Readonly<Record<string, unknown>> {
  if (!isJson(body)) throw new Fault("invalid", "the message is not a JSON object")
  if (!isUtf8(body)) throw new Fault("invalid", "the message is not UTF-8")
  if (body.length > frameLimits.jsonDepthMax && depthOf(body) > frameLimits.jsonDepthMax) {
    throw new Fault("invalid", `the message is nested deeper than ${frameLimits.jsonDepthMax}`)
  }
  try {
    return JSON.parse(body.toString()) as Record<string, unknown>
  } catch (cause) {
    throw new Fault("invalid", "the message is not JSON", { cause })
  }
}

function depthOf(body: Buffer): number {
  let depth = 0
  let deepest = 0
  let isInString = false
  for (let i = 0; i < body.length; i++) {
    const byte = body[i]
    if (isInString) {
      if (byte === 0x5c) i++
      else if (byte === 0x22) isInString = false
    } else if (byte === 0x22) isInString = true
    else if (byte === 0x7b || byte === 0x5b) deepest = Math.max(deepest, ++depth)
    else if (byte === 0x7d || byte === 0x5d) depth--
  }
  return deepest
}

export type OnBody = (body: Buffer) => void
export type OnBytes = (tag: StreamTag, bytes: Buffer) => void

/**
 * Cuts a byte stream into frame bodies. A bad length is found as soon as its bytes are here, before anything is reserved
 * for it; the stream cannot be trusted after that, so the fault is final.
 */
export class FrameDecoder {
  /** What has come of a frame that is not whole yet, and room for more. */
  #kept: Buffer = nothing
  #haveBytes = 0
  #needBytes = 0
  #stream: { readonly tag: StreamTag; leftBytes: number } | undefined

  /**
   * Calls `onBody` for each whole frame; what it gets may share memory with `chunk`. With `onBytes`, the bytes of a stream
   * frame are handed out as they come instead: they need no joining, which is most of the cost of a large output.
   */
  push(chunk: Buffer, onBody: OnBody, onBytes?: OnBytes): void {
    const unread = this.#stream && onBytes ? this.#pass(chunk, this.#stream, onBytes) : chunk
    if (unread.length === 0) return
    let rest = this.#haveBytes === 0 ? unread : this.#keep(unread)
    if (this.#haveBytes > 0 && rest.length < this.#needBytes) return
    for (;;) {
      this.#needBytes = frameBytes(rest)
      const isStream = onBytes !== undefined && rest.length > headerBytes && rest[headerBytes] !== openBrace
      if (isStream) rest = this.#beginStream(rest, onBytes)
      else if (rest.length < this.#needBytes) break
      else {
        onBody(rest.subarray(headerBytes, this.#needBytes))
        rest = rest.subarray(this.#needBytes)
      }
    }
    this.#kept = nothing
    this.#haveBytes = 0
    if (rest.length > 0) this.#keep(rest)
  }

  /** Bytes of a frame that has begun and not ended. */
  get pendingBytes(): number {
    return this.#haveBytes + (this.#stream?.leftBytes ?? 0)
  }

  /** Adds a copy (whoever gave the chunk may use its memory again) to what is kept; all of that is returned. */
  #keep(piece: Buffer): Buffer {
    const have = this.#haveBytes + piece.length
    if (this.#kept.length < have) {
      const larger = Buffer.allocUnsafeSlow(Math.max(have * 2, leastKeptBytes))
      this.#kept.copy(larger, 0, 0, this.#haveBytes)
      this.#kept = larger
    }
    piece.copy(this.#kept, this.#haveBytes)
    this.#haveBytes = have
    return this.#kept.subarray(0, have)
  }

  #beginStream(rest: Buffer, onBytes: OnBytes): Buffer {
    const stream = { tag: rest[headerBytes] as StreamTag, leftBytes: this.#needBytes - headerBytes - 1 }
    this.#stream = stream
    this.#needBytes = headerBytes
    return this.#pass(rest.subarray(headerBytes + 1), stream, onBytes)
  }

  /** Hands out what of the current stream frame is here; returns what follows it. */
  #pass(chunk: Buffer, stream: { readonly tag: StreamTag; leftBytes: number }, onBytes: OnBytes): Buffer {
    const bytes = chunk.subarray(0, stream.leftBytes)
    stream.leftBytes -= bytes.length
    if (stream.leftBytes === 0) this.#stream = undefined
    if (bytes.length > 0) onBytes(stream.tag, bytes)
    return chunk.subarray(bytes.length)
  }
}

/** How many bytes the frame at the start of `bytes` takes, as far as can be known; a length no frame may have is a fault. */
function frameBytes(bytes: Buffer): number {
  if (bytes.length < headerBytes) return headerBytes
  const length = bytes.readUInt32BE(0)
  if (length === 0) throw new Fault("invalid", "a frame of no bytes")
  if (length > frameLimits.jsonBytesMax) throw tooLong(length, frameLimits.jsonBytesMax)
  if (bytes.length === headerBytes) return headerBytes + 1
  const tag = bytes[headerBytes] ?? 0
  if (tag !== openBrace) {
    if (tag < 1 || tag > lastTag) throw new Fault("invalid", `a frame with the unknown tag ${tag}`)
    if (length > frameLimits.streamBytesMax) throw tooLong(length, frameLimits.streamBytesMax)
  }
  return headerBytes + length
}

function tooLong(length: number, max: number): Fault {
  return new Fault("limit", `a frame of ${length} bytes is over the limit of ${max}`)
}
