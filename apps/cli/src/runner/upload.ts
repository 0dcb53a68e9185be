import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"

type Uploading<Told> = Conversation<{ op: "eof" }, Told>

/** Sends bytes as fast as they are taken, hears what is said meanwhile, and returns when the other side is done. */
export async function upload<Told>(
  conversation: Uploading<Told>,
  source: AsyncIterable<Uint8Array>,
  hear: (message: Told, sentBytes: number) => void,
): Promise<void> {
  let sentBytes = 0
  let failure: { readonly thrown: unknown } | undefined
  const sending = (async () => {
    for await (const piece of source) {
      await conversation.write(piece)
      sentBytes += piece.length
    }
    conversation.send({ op: "eof" })
  })().catch(async (thrown: unknown) => {
    failure = { thrown }
    // Without its end nothing of it may be kept: leaving says so.
    await conversation[Symbol.asyncDispose]()
  })
  try {
    for (let item = await conversation.next(); item !== undefined; item = await conversation.next()) {
      if (!(item instanceof Chunk)) hear(item, sentBytes)
    }
    await sending
  } catch (thrown) {
    throw failure ? failure.thrown : thrown
  }
  if (failure) throw failure.thrown
}
