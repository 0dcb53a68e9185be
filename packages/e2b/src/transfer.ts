import { Chunk, endOfBytes, type Conversation } from "@warren/protocol/conversation.ts"

interface Giving extends AsyncDisposable {
  next(): Promise<unknown>
}

/** The bytes of a file on their way out. */
export async function* poured(conversation: Giving): AsyncGenerator<Buffer> {
  await using giving = conversation
  for (let item = await giving.next(); item !== undefined; item = await giving.next()) {
    if (item instanceof Chunk) yield Buffer.from(item.bytes)
  }
}

type Taking = Pick<Conversation<typeof endOfBytes, unknown>, "next" | "send" | "write"> & AsyncDisposable
type Pieces = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/** Bytes on their way in. Resolves when the file is there. */
export async function filled(conversation: Taking, pieces: Pieces): Promise<void> {
  await using taking = conversation
  for await (const piece of pieces) if (piece.length > 0) await taking.write(piece)
  taking.send(endOfBytes)
  while ((await taking.next()) !== undefined);
}

/** What a request brings; nothing is no bytes. */
export function bodyOf(request: Request): Pieces {
  return request.body ?? []
}
