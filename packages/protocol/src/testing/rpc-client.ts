import { SocketPair } from "@warren/base/testing/socket-pair.ts"
import { RpcClient } from "../rpc/client.ts"
import { RawPeer, wire, type Wire } from "./rpc-system.ts"

export const welcome = { welcome: { version: 1, build: "x", inFlightMax: 512 } }

/** What it was rejected with, or that it was answered. */
export function outcome(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => "answered",
    (thrown: unknown) => thrown,
  )
}

/** A client whose other end does only what the test does. */
export async function withPeer(work: (client: RpcClient<Wire>, peer: RawPeer) => Promise<void>): Promise<void> {
  await using pair = await SocketPair.make()
  const peer = new RawPeer(pair.right)
  await using client = new RpcClient(pair.left, wire)
  await work(client, peer)
}
