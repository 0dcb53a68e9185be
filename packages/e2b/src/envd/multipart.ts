import { Fault } from "@warren/base/fault.ts"

const headBytesMax = 16 * 1024
const lineEnd = Buffer.from("\r\n\r\n")

export interface Part {
  readonly name: string
  readonly filename: string | undefined
  /** To be read to its end before the next part is asked for. */
  readonly body: AsyncIterable<Buffer>
}

export function boundaryOf(contentType: string): string {
  const found = /boundary=(?:"([^"]{1,200})"|([^;\s]{1,200}))/i.exec(contentType)
  const boundary = found?.[1] ?? found?.[2]
  if (boundary === undefined) throw new Fault("invalid", "the form has no boundary")
  return boundary
}

/** The parts of a form as they come: of a file of any size, only what has just come is held. */
export async function* partsOf(chunks: AsyncIterable<Uint8Array>, boundary: string): AsyncGenerator<Part> {
  const text = new Pending(chunks)
  const mark = Buffer.from(`\r\n--${boundary}`)
  // The first one stands at the very beginning, where no line has ended yet.
  text.put(Buffer.from("\r\n"))
  await skip(text.until(mark))
  for (;;) {
    const end = await text.take(2)
    if (end.toString() === "--") return
    const head = (await text.head()).toString()
    yield { name: field(head, "name") ?? "", filename: field(head, "filename"), body: text.until(mark) }
  }
}

async function skip(pieces: AsyncIterable<Buffer>): Promise<void> {
  for await (const _ of pieces);
}

function field(head: string, name: string): string | undefined {
  const found = new RegExp(`^content-disposition:.*;\\s*${name}="([^"]*)"`, "im").exec(head)?.[1]
  return found?.replaceAll("%22", '"').replaceAll("%0D", "\r").replaceAll("%0A", "\n")
}

/** What has come and was not taken yet. */
class Pending {
  readonly #chunks: AsyncIterator<Uint8Array, void>
  #held = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, void>
  }

  put(bytes: Buffer): void {
    this.#held = Buffer.concat([this.#held, bytes])
  }

  async take(count: number): Promise<Buffer> {
    while (this.#held.length < count) await this.#more()
    return this.#cut(count)
  }

  async head(): Promise<Buffer> {
    for (;;) {
      const at = this.#held.indexOf(lineEnd)
      if (at >= 0) return this.#cut(at + lineEnd.length)
      if (this.#held.length > headBytesMax) throw new Fault("invalid", "a part of the form has too long a head")
      await this.#more()
    }
  }

  /** Everything before the mark, which is taken, too. */
  async *until(mark: Buffer): AsyncGenerator<Buffer> {
    for (;;) {
      const at = this.#held.indexOf(mark)
      if (at >= 0) {
        if (at > 0) yield this.#cut(at)
        this.#cut(mark.length)
        return
      }
      // The mark may have come in part.
      const sure = this.#held.length - mark.length + 1
      if (sure > 0) yield this.#cut(sure)
      await this.#more()
    }
  }

  #cut(count: number): Buffer {
    const piece = this.#held.subarray(0, count)
    this.#held = this.#held.subarray(count)
    return piece
  }

  async #more(): Promise<void> {
    const next: IteratorResult<Uint8Array, void> = await this.#chunks.next()
    if (next.done) throw new Fault("invalid", "the form ends in the middle")
    this.put(Buffer.from(next.value))
  }
}
