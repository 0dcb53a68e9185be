import { encodeStream, FrameDecoder, streamTags } from "@warren/base/frame.ts"
import { serve } from "../peer-program.ts"

await serve((socket) => {
  const decoder = new FrameDecoder()
  socket.on("data", (chunk: Buffer) => {
    decoder.push(chunk, (body) => socket.write(encodeStream(streamTags.raw, body.subarray(1))))
  })
})
