import { serve } from "../peer-program.ts"

/** Reads bytes and forgets them; the first four say after how many to answer with one. */
await serve((socket) => {
  let wanted = 0
  let bytes = 0
  socket.on("data", (chunk: Buffer) => {
    if (wanted === 0) wanted = chunk.readUInt32BE(0)
    bytes += chunk.length
    if (bytes < wanted) return
    bytes -= wanted
    socket.write("!")
  })
})
