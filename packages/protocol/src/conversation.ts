import type { StreamTag } from "@warren/base/frame.ts"

/** Raw bytes of a stream. They are good until the next thing is asked for; who keeps them copies them. */
export class Chunk {
  readonly tag: StreamTag
  readonly bytes: Buffer

  constructor(tag: StreamTag, bytes: Buffer) {
    this.tag = tag
    this.bytes = bytes
  }
}

/** What a caller says when it has sent all its bytes, to a stream that takes any. */
export const endOfBytes = { op: "eof" } as const

/** The caller's end of a stream. Disposing it ends what it was about. */
export interface Conversation<Up, Down> extends AsyncDisposable {
  /** The next message or piece of bytes; undefined when it is over. Reading slowly holds the other side back. */
  next(): Promise<Down | Chunk | undefined>
  send(message: Up): void
  /** Waits while the other side does not take more. */
  write(bytes: Uint8Array): Promise<void>
}
