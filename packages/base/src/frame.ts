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
/** A peer that sends its bytes one by one must not make us keep an object of a hundred bytes for each. */
const piecesMax = 1024

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

/**
 * Cuts a byte stream into frame bodies. A bad length is found as soon as its bytes are here, before anything is reserved
 * for it; the stream cannot be trusted after that, so the fault is final.
 */
export class FrameDecoder {
  #pieces: Buffer[] = []
  #haveBytes = 0
  #needBytes = 0

  /** Calls `onBody` for each whole frame. A body may share memory with `chunk`. */
  push(chunk: Buffer, onBody: (body: Buffer) => void): void {
    this.#pieces.push(chunk)
    this.#haveBytes += chunk.length
    // Joined once, when the frame can be whole, not at every chunk.
    if (this.#haveBytes < this.#needBytes) {
      if (this.#pieces.length >= piecesMax) this.#pieces = [Buffer.concat(this.#pieces, this.#haveBytes)]
      return
    }
    let rest = this.#pieces.length === 1 ? chunk : Buffer.concat(this.#pieces, this.#haveBytes)
    for (;;) {
      this.#needBytes = frameBytes(rest)
      if (rest.length < this.#needBytes) break
      onBody(rest.subarray(headerBytes, this.#needBytes))
      rest = rest.subarray(this.#needBytes)
    }
    this.#pieces = rest.length === 0 ? [] : [rest]
    this.#haveBytes = rest.length
  }

  /** Bytes of a frame that has begun and not ended. */
  get pendingBytes(): number {
    return this.#haveBytes
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
