import type { z } from "zod"
import type { Ended } from "@warren/protocol/user-plane/processes.ts"
import { eventsOf } from "./events.ts"
import type { Http, Waiting } from "./http.ts"
import { fromBase64, Pieces, type OutputName, type Piece } from "./output.ts"
import type { Input, Message, StreamRoute } from "./routes.ts"

/** How a program ended. */
export type End = z.output<typeof Ended>

const outputs: ReadonlySet<string> = new Set(["stdout", "stderr", "pty"])

/** What a stream says over HTTP: pieces of output, and messages by their name. */
export async function* runEvents<R extends StreamRoute>(
  http: Http,
  route: R,
  input: Input<R> | (Omit<Input<R>, "stdin"> & { stdin: string }),
  { signal }: Waiting = {},
): AsyncGenerator<Piece | Message<R>, void, void> {
  const options = { signal, headers: { accept: "text/event-stream" }, query: { encoding: "base64" } }
  const response = await http.open(route, input, options)
  const pieces = new Pieces()
  for await (const { event, data } of eventsOf(response, signal)) {
    const told = JSON.parse(data) as Record<string, unknown>
    if (outputs.has(event)) yield pieces.of(event as OutputName, fromBase64(String(told["base64"])))
    else yield { ev: event, ...told } as Message<R>
  }
}

export function isPiece(item: object): item is Piece {
  return "bytes" in item && "from" in item
}
