import { FrameChannel } from "@warren/base/frame-channel.ts"
import { isJson } from "@warren/base/frame.ts"
import { serve } from "../peer-program.ts"

/** Reads frames and forgets them; answers each JSON one with how many bytes came before it. */
await serve((socket) => {
  let bytes = 0
  const channel = new FrameChannel(socket, {
    body(body) {
      if (isJson(body)) channel.send({ bytes })
      else bytes += body.length - 1
    },
    end: () => undefined,
  })
})
