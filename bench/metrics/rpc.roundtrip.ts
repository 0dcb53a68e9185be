import { encodeStream, FrameDecoder, streamTags } from "@warren/base/frame.ts"
import { connectUnix } from "@warren/base/unix-socket.ts"
import { RpcClient } from "@warren/protocol/rpc/client.ts"
import { keepAwake } from "../awake.ts"
import { healthContract, healthOf } from "../health.ts"
import { defineMetric, elapsedMs } from "../metric.ts"

/** One call and its answer through everything the rpc does, against the frames alone with as many bytes in them. */
export const metric = defineMetric({
  name: "rpc.roundtrip",
  unit: "us",
  goal: { ratioMax: 2 },
  samples: { full: 20_000, quick: 4_000 },
  perTurn: 100,
  async prepare(context) {
    const client = new RpcClient(await connectUnix(await context.peer("rpc-server")), healthContract, "bench")
    context.scope.use(client)
    context.scope.use(keepAwake())
    const answerBytes = JSON.stringify({ id: 1000, out: healthOf(process.pid) }).length
    return { client, echo: await echoClient(await context.peer("frame-echo"), answerBytes - 1) }
  },
  run: async ({ client }) => (await elapsedMs(() => client.call("health.check", {}))) * 1_000,
  baseline: {
    name: "bare frame echo",
    run: async ({ echo }) => (await elapsedMs(echo)) * 1_000,
  },
})

async function echoClient(path: string, bytes: number): Promise<() => Promise<void>> {
  const socket = await connectUnix(path)
  const payload = Buffer.alloc(bytes, "x")
  const decoder = new FrameDecoder()
  let answered = (): void => undefined
  socket.on("data", (chunk: Buffer) => decoder.push(chunk, () => answered()))
  return () =>
    new Promise((resolve) => {
      answered = resolve
      socket.write(encodeStream(streamTags.raw, payload))
    })
}
