import { Served, RawPeer, wire } from "./rpc-system.ts"
import { openStream } from "../rpc/stream.ts"
import type { Conversation } from "../conversation.ts"

export type Pipe = Conversation<{ op: string }, { ev: string }>
export type Mode = Parameters<typeof openStream<typeof wire, "pipe.open">>[3]["mode"]

export async function piped(
  mode: Mode,
  work: (pipe: Pipe, served: Served) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  await using served = await Served.start()
  await using pipe = await openStream(served.peer, wire, "pipe.open", { mode }, signal)
  await work(pipe, served)
}

export async function servedRaw(work: (peer: RawPeer, served: Served) => Promise<void>): Promise<void> {
  await using served = await Served.start()
  await work(new RawPeer(served.peer).hello(), served)
}

export const thrownBy = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "nothing",
    (thrown: unknown) => thrown,
  )
