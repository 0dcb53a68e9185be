import { Fault } from "@warren/base/fault.ts"
import { toFault } from "./http.ts"

export interface ServerEvent {
  readonly event: string
  readonly id: string
  readonly data: string
}

/** Longer lines than this no Warren sends. */
const lineCharsMax = 8 * 1024 * 1024

/**
 * The events of an answer, until `end`. What breaks off before that is `unavailable`; what the other side gave up on is the
 * fault it tells.
 */
export async function* eventsOf(response: Response, signal?: AbortSignal): AsyncGenerator<ServerEvent, void, void> {
  let [event, id, data] = ["message", "", ""]
  for await (const line of linesOf(response, signal)) {
    const [, field = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
    if (field === "event") event = value
    else if (field === "id") id = value
    else if (field === "data") data += data === "" ? value : `\n${value}`
    else if (line === "" && data !== "") {
      if (event === "end") return
      if (event === "fault") throw toFault(JSON.parse(data) as Record<string, unknown>)
      yield { event, id, data }
      ;[event, id, data] = ["message", "", ""]
    }
  }
  throw new Fault("unavailable", "the connection was lost")
}

async function* linesOf(response: Response, signal?: AbortSignal): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder()
  const reader = response.body?.getReader() as Reader | undefined
  let rest = ""
  try {
    for (;;) {
      const { done, value } = (await reader?.read().catch(lost(signal))) ?? { done: true, value: undefined }
      if (done) return
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/)
      rest = lines.pop() ?? ""
      if (rest.length > lineCharsMax) throw new Fault("limit", "an event is too long")
      yield* lines
    }
  } finally {
    // Whoever leaves early is not interested in the rest, nor in how it ends.
    await reader?.cancel().catch(() => undefined)
  }
}

/** What of a reader is used here. */
interface Reader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  cancel(): Promise<void>
}

function lost(signal: AbortSignal | undefined): (cause: unknown) => never {
  return (cause) => {
    signal?.throwIfAborted()
    throw new Fault("unavailable", "the connection was lost", { cause })
  }
}
