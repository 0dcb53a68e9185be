import { Fault } from "@warren/base/fault.ts"
import type { Asked } from "@warren/protocol/contract.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"
import type { FileEntry } from "@warren/protocol/user-plane/files.ts"
import type { z } from "zod"
import type { Runner } from "../runner/runner.ts"

export type Entry = Pick<z.output<typeof FileEntry>, "name" | "type" | "mode" | "target">

/** Files that are not here: a session's, or a workspace's. */
export interface InsideFiles extends AsyncDisposable {
  stat(path: string): Promise<Entry>
  statIfAny(path: string): Promise<Entry | undefined>
  /** What lies directly in a folder. */
  list(path: string): Promise<readonly Entry[]>
  /** Each piece is good until the next is asked for. */
  read(path: string): AsyncIterable<Buffer>
  write(path: string, source: AsyncIterable<Uint8Array>, mode?: number): Promise<void>
  /** One that is there is fine. */
  mkdir(path: string): Promise<void>
  /** Runs a small program there, for what the wire has no call for. Says whether it ended well. */
  run(argv: readonly string[]): Promise<boolean>
}

/** Whether a small program ended well in a session. */
export async function runInside(runner: Runner, input: Asked<typeof userPlane, "process.exec">): Promise<boolean> {
  await using conversation = await runner.open("process.exec", input)
  for (let item = await conversation.next(); item !== undefined; item = await conversation.next()) {
    if (!(item instanceof Chunk) && item.ev === "exit") return item.exitCode === 0
  }
  return false
}

/** Nothing there is an answer, too. */
export async function ifAny<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.code === "not_found") return undefined
    throw thrown
  }
}
