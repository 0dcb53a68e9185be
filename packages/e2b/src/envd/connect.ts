import { Fault, isCancellation, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { rpcRefusal } from "../refusal.ts"

/** Connect over HTTP with JSON: one answer, or many in envelopes of one byte of flags and four of length. */
const endFlag = 0x02
const headBytes = 5

export function unaryAnswer(value: object): Response {
  return Response.json(value)
}

export function unaryRefusal(thrown: unknown): Response {
  const { status, error } = rpcRefusal(Fault.from(thrown))
  return Response.json(error, { status })
}

/** What is asked of a stream: the only message of its request. */
export function enveloped(body: Buffer): Buffer {
  if (body.length < headBytes || body.readUInt32BE(1) !== body.length - headBytes || (body[0] ?? 0) !== 0) {
    throw new Fault("invalid", "the request is not one uncompressed message")
  }
  return body.subarray(headBytes)
}

function envelope(value: object, flags = 0): Buffer {
  const json = Buffer.from(JSON.stringify(value))
  const head = Buffer.alloc(headBytes)
  head.writeUInt8(flags)
  head.writeUInt32BE(json.length, 1)
  return Buffer.concat([head, json])
}

interface StreamOptions {
  /** What is said when nothing else was for a while, so that nobody in between takes the connection for dead. */
  readonly keepalive: object
  readonly keepaliveMs: number
  /** The sandbox is gone: the connection is cut, which is how clients learn of it. */
  readonly cut: AbortSignal
  readonly log: Log
  over(): void
}

/** Messages as they come, then how it ended. Nobody reading holds back who makes them. */
export function streamAnswer(messages: AsyncGenerator<object, void, void>, options: StreamOptions): Response {
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  const finish = (): void => {
    if (isOver) return
    isOver = true
    clearInterval(timer)
    options.over()
  }
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const say = (): void => {
        if (!isOver) controller.enqueue(envelope(options.keepalive))
      }
      timer = setInterval(say, options.keepaliveMs)
      options.cut.addEventListener("abort", () => {
        if (isOver) return
        finish()
        controller.error(options.cut.reason)
      })
    },
    async pull(controller) {
      const next = await nextOf(messages, options)
      if (isOver) return
      timer?.refresh()
      controller.enqueue(next.message)
      if (!next.isLast) return
      finish()
      controller.close()
    },
    async cancel() {
      finish()
      await messages.return(undefined)
    },
  })
  return new Response(body, { headers: { "content-type": "application/connect+json" } })
}

async function nextOf(
  messages: AsyncGenerator<object, void, void>,
  { log, cut }: StreamOptions,
): Promise<{ message: Buffer; isLast: boolean }> {
  try {
    const next: IteratorResult<object, void> = await messages.next()
    return next.done
      ? { message: envelope({}, endFlag), isLast: true }
      : { message: envelope(next.value), isLast: false }
  } catch (thrown) {
    const fault = Fault.from(thrown)
    if (fault.code === "internal" && !cut.aborted && !isCancellation(thrown)) {
      const stack = thrown instanceof Error ? thrown.stack : undefined
      log("error", "e2b.bug", { message: messageOf(thrown), stack })
    }
    return { message: envelope({ error: rpcRefusal(fault).error }, endFlag), isLast: true }
  }
}
