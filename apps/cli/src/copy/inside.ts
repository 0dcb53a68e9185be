import { Fault } from "@warren/base/fault.ts"
import type { FileEntry } from "@warren/protocol/user-plane/files.ts"
import type { z } from "zod"

export type Entry = Pick<z.output<typeof FileEntry>, "name" | "type" | "mode" | "target">

/** Files that are not here: a session's, or a workspace's. */
export interface InsideFiles {
  stat(path: string): Promise<Entry>
  statIfAny(path: string): Promise<Entry | undefined>
  /** What lies directly in a folder. */
  list(path: string): Promise<readonly Entry[]>
  /** Each piece is good until the next is asked for. */
  read(path: string): AsyncIterable<Buffer>
  write(path: string, source: AsyncIterable<Uint8Array>, mode?: number): Promise<void>
  /** One that is there is fine. */
  mkdir(path: string): Promise<void>
  /** Runs a small program there, for what the wire has no call for. False: it cannot be run, or it failed. */
  run(argv: readonly string[]): Promise<boolean>
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
