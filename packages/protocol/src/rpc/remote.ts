import type { Duplex } from "node:stream"
import { isFeed, isStream, type CallName, type Contract, type Entry, type FeedName } from "../contract.ts"
import type { Context, Handlers, StreamName } from "../contract.ts"
import type { RpcClient } from "./client.ts"
import { openStream } from "./stream.ts"
import { rpcLimits } from "./wire.ts"

/** Results that are waited for at once on the connection of the calls, which have to get through as well. */
const collectsMax = rpcLimits.inFlightMax / 2

/** How what answers a contract is reached. */
export interface Reach<C extends Contract> {
  /** For calls and feeds, which share a connection. */
  client(): Promise<RpcClient<C>>
  /** For one stream, which has its own. */
  connect(signal: AbortSignal): Promise<Duplex>
  /** For whom this is asked, where that has to be proven: a signed statement. */
  sign?(call: string, input: unknown, context: Context): string
  /** What this is a part of, where somebody follows it across processes. */
  trace?(context: Context): string | undefined
}

/** A contract's handlers that ask somebody else: what is at the other end of a socket, in the shape of what is here. */
export function remote<C extends Contract>(contract: C, reach: Reach<C>): Handlers<C> {
  const ask = (name: string, entry: Entry) => {
    const options = (input: unknown, context: Context) => ({
      signal: context.signal,
      statement: reach.sign?.(name, input, context),
      trace: reach.trace?.(context),
    })
    if (isStream(entry)) {
      return async (input: never, context: Context) => {
        const { signal, statement, trace } = options(input, context)
        const client = context.collects ? await reach.client() : undefined
        if (client && client.waiting < collectsMax)
          return client.collect(name as StreamName<C>, input, { signal, statement, trace })
        return openStream(await reach.connect(signal), contract, name as StreamName<C>, input, signal, statement, trace)
      }
    }
    if (isFeed(entry)) {
      return async function* (input: never, context: Context) {
        yield* (await reach.client()).feed(name as FeedName<C>, input, options(input, context))
      }
    }
    return async (input: never, context: Context) =>
      (await reach.client()).call(name as CallName<C>, input, { ...options(input, context), key: context.key })
  }
  const entries = Object.entries(contract).map(([name, entry]) => [name, ask(name, entry)] as const)
  return Object.fromEntries(entries) as unknown as Handlers<C>
}
