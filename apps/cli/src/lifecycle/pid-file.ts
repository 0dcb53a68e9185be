import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import { z } from "zod"
import { identityOf, isAlive, ProcessIdentity } from "./process-identity.ts"

/** The process that keeps a Warren's parts running, and those parts. */
const Holder = z.object({
  ...ProcessIdentity.shape,
  port: z.int(),
  isDaemon: z.boolean(),
  parts: z.array(ProcessIdentity),
})
export type Holder = z.output<typeof Holder>

const fileOf = (home: string): string => join(home, "warren.pid")

/** Who keeps this Warren running; undefined when nobody does, whatever a killed one has left behind. */
export function readHolder(home: string): Holder | undefined {
  const holder = written(home)
  return holder && isAlive(holder) ? holder : undefined
}

/** What still runs of a Warren whose keeper was killed. */
export function readOrphans(home: string): ProcessIdentity[] {
  const holder = written(home)
  return holder && !isAlive(holder) ? holder.parts.filter(isAlive) : []
}

/** Makes this process the one that keeps this Warren running. Of two that try at once one is refused. */
export class Hold implements Disposable {
  readonly #home: string
  readonly #mine: Omit<Holder, "parts">

  constructor(home: string, about: { readonly port: number; readonly isDaemon: boolean }) {
    this.#home = home
    this.#mine = { ...identityOf(process.pid), port: about.port, isDaemon: about.isDaemon }
    refuseOthers(home)
    rmSync(fileOf(home), { force: true })
    // A link is never made over another's; and whoever slips through here meets the runner's own lock.
    this.#write([], linkSync)
  }

  /** Writes down which processes are kept, so that they can be ended even if this one is killed. */
  keeps(pids: readonly number[]): void {
    this.#write(pids.map(identityOf), renameSync)
  }

  [Symbol.dispose](): void {
    if (written(this.#home)?.pid === process.pid) rmSync(fileOf(this.#home), { force: true })
  }

  #write(parts: readonly ProcessIdentity[], put: (draft: string, file: string) => void): void {
    const file = fileOf(this.#home)
    const draft = `${file}.${process.pid}`
    try {
      writeFileSync(draft, JSON.stringify({ ...this.#mine, parts }), { mode: 0o600 })
      put(draft, file)
    } catch (cause) {
      if (errnoOf(cause) === "EEXIST")
        throw new Fault("conflict", `Warren is already starting on ${this.#home}`, { cause })
      throw new Fault("unavailable", `could not write ${file} (${errnoOf(cause)})`, { cause })
    } finally {
      rmSync(draft, { force: true })
    }
  }
}

/** Takes away what a killed one has left written. */
export function forgetHolder(home: string): void {
  rmSync(fileOf(home), { force: true })
}

function refuseOthers(home: string): void {
  const other = readHolder(home)
  const hint = "stop it with: warren stop"
  if (other) throw new Fault("conflict", `Warren is already running on ${home} (pid ${other.pid})`, { hint })
  const [orphan] = readOrphans(home)
  if (orphan)
    throw new Fault("conflict", `a part of Warren is already running on ${home} (pid ${orphan.pid})`, { hint })
}

function written(home: string): Holder | undefined {
  try {
    return Holder.safeParse(JSON.parse(readFileSync(fileOf(home), "utf8"))).data
  } catch {
    return undefined
  }
}
