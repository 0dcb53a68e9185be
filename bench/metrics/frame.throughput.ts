import { once } from "node:events"
import type { Socket } from "node:net"
import { FrameChannel } from "@warren/base/frame-channel.ts"
import { streamTags } from "@warren/base/frame.ts"
import { connectUnix } from "@warren/base/unix-socket.ts"
import { defineMetric, elapsedMs } from "../metric.ts"

const chunk = Buffer.alloc(64 * 1024, "x")
const chunks = 1_024
const megabytes = (chunk.length * chunks) / 1_000_000

/** 64 MiB as stream frames, until the other process says that it has them; against the same bytes without frames. */
export const metric = defineMetric({
  name: "frame.throughput",
  unit: "MB/s",
  isHigherBetter: true,
  samples: { full: 40, quick: 8 },
  async prepare(context) {
    const raw = await connectUnix(await context.peer("byte-sink"))
    let answered = (): void => undefined
    const handlers = { body: () => answered(), end: () => undefined }
    const channel = context.scope.use(new FrameChannel(await connectUnix(await context.peer("frame-sink")), handlers))
    context.scope.defer(() => void raw.destroy())
    return { raw, channel, answer: () => new Promise<void>((resolve) => (answered = resolve)) }
  },
  run: async ({ channel, answer }) => megabytes / ((await elapsedMs(() => sendFrames(channel, answer))) / 1_000),
  baseline: {
    name: "the same bytes through the bare socket",
    run: async ({ raw }) => megabytes / ((await elapsedMs(() => sendBytes(raw))) / 1_000),
  },
})

async function sendFrames(channel: FrameChannel, answer: () => Promise<void>): Promise<void> {
  for (let i = 0; i < chunks; i++) {
    channel.sendBytes(streamTags.raw, chunk)
    if (!channel.hasRoom) await channel.room()
  }
  const done = answer()
  channel.send({ done: true })
  await done
}

async function sendBytes(socket: Socket): Promise<void> {
  await Promise.all([once(socket, "data"), writeAll(socket)])
}

async function writeAll(socket: Socket): Promise<void> {
  const first = Buffer.from(chunk)
  first.writeUInt32BE(chunk.length * chunks, 0)
  for (let i = 0; i < chunks; i++) if (!socket.write(i === 0 ? first : chunk)) await once(socket, "drain")
}
