import { mkdir, mkdtemp, rm } from "node:fs/promises"
import { join } from "node:path"
import { Scope } from "@warren/base/scope.ts"
import type { Context } from "./metric.ts"
import { startPeer } from "./peer.ts"

interface WorkbenchOptions {
  /** Warren's data folder: what is measured lies beside what it stands for. */
  readonly home: string
  /** Where the bundled peers are. */
  readonly peers: string
  readonly signal: AbortSignal
  readonly isQuick: boolean
  readonly patienceMs?: number | undefined
}

/** Why a metric gives no figure here. */
export class Skipped extends Error {}

/** Gives one metric its folder and its scope, and takes both away again, whatever happens. */
export async function withWorkbench<T>(options: WorkbenchOptions, work: (context: Context) => Promise<T>): Promise<T> {
  await mkdir(options.home, { recursive: true, mode: 0o700 })
  const folder = await mkdtemp(join(options.home, "bench-"))
  await using scope = new Scope()
  scope.defer(() => rm(folder, { recursive: true, force: true }))
  return await work({
    folder,
    scope,
    signal: options.signal,
    isQuick: options.isQuick,
    patienceMs: options.patienceMs,
    peer: (name) => startPeer(name, { programs: options.peers, folder, scope }),
    skip(why) {
      throw new Skipped(why)
    },
  })
}
