import { spawn, type ChildProcessByStdio } from "node:child_process"
import { rm } from "node:fs/promises"
import { createInterface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import type { Command } from "@warren/drivers/driver.ts"
import type { ImageView, LayerView, Seen } from "../layer/merged.ts"
import type { UnpackOptions } from "../layer/packed.ts"
import type { Place } from "../layer/place.ts"
import type { Job, Look, Told } from "./jobs.ts"
import type { Keeper, Unpacked } from "./keeper.ts"

/** Of its last words. */
const saidMax = 1000

/** Other processes, one for each job: they may do to the files of layers what this one may not. */
export class KeeperProcesses implements Keeper {
  readonly #command: (job: string) => Command

  /** `command`: the keeper's program, for a job. */
  constructor(command: (job: string) => Command) {
    this.#command = command
  }

  unpack(packed: AsyncIterable<Uint8Array>, options: UnpackOptions): Promise<Unpacked> {
    return this.#make({ do: "unpack", ...partsOf(options) }, options.signal, packed)
  }

  repack(upper: string, options: UnpackOptions): Promise<Unpacked> {
    return this.#make({ do: "repack", upper, ...partsOf(options) }, options.signal)
  }

  view(layers: readonly LayerView[]): ImageView {
    return new ViewProcess(this.#begin({ do: "view", layers }))
  }

  /** By ourselves where all of it is ours. */
  async remove(path: string): Promise<void> {
    try {
      await rm(path, { recursive: true, force: true })
    } catch (failure) {
      if (!["EACCES", "EPERM"].includes(errnoOf(failure))) throw failure
      await using job = this.#begin({ do: "remove", path })
      await job.told()
    }
  }

  async #make(job: Job, signal: AbortSignal | undefined, packed?: AsyncIterable<Uint8Array>): Promise<Unpacked> {
    signal?.throwIfAborted()
    await using running = this.#begin(job)
    using _ = onAbort(signal, () => running.kill())
    const [fed, made] = await Promise.allSettled([running.feed(packed), running.told()])
    signal?.throwIfAborted()
    // What went wrong with the archive before it came here is told as it is.
    if (fed.status === "rejected") throw fed.reason
    if (made.status === "rejected") throw made.reason
    return made.value as Unpacked
  }

  #begin(job: Job): Running {
    return new Running(this.#command(JSON.stringify(job)))
  }
}

/** The signal stays with whoever has it. */
function partsOf({ root, scratch, limits }: UnpackOptions): Omit<UnpackOptions, "signal"> {
  return { root, scratch, limits }
}

/** One process with one job. Gone when disposed. */
class Running implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #ended: Promise<Fault>
  readonly #lines: AsyncIterator<string>

  constructor([program, ...args]: Command) {
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], cwd: "/" })
    this.#child = child
    let said = ""
    child.stderr.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-saidMax)))
    // A write after it died fails here; its end is told by `close`.
    child.stdin.on("error", () => undefined)
    this.#ended = new Promise((resolve) => {
      child.once("error", (cause) => resolve(new Fault("unavailable", `cannot run ${program}`, { cause })))
      child.once("close", (code, signal) =>
        resolve(new Fault("unavailable", `the keeper of images ended (${signal ?? code}): ${said.trim()}`)),
      )
    })
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  }

  /** Fails when there is no more to be had of what it should be fed; what it does not want to read is its own business. */
  async feed(packed: AsyncIterable<Uint8Array> | undefined): Promise<void> {
    if (!packed) return
    let failure: { readonly thrown: unknown } | undefined
    async function* watched(): AsyncGenerator<Uint8Array, void, void> {
      try {
        if (packed) yield* packed
      } catch (thrown) {
        failure = { thrown }
        throw thrown
      }
    }
    await pipeline(watched(), this.#child.stdin).catch(() => undefined)
    if (failure) throw failure.thrown
  }

  ask(look: Look): void {
    this.#child.stdin.write(`${JSON.stringify(look)}\n`)
  }

  async told(): Promise<unknown> {
    const line = await this.#lines.next()
    if (line.done) throw await this.#ended
    const told = JSON.parse(line.value) as Told
    if ("fault" in told) throw Fault.fromData(told.fault)
    return told.ok
  }

  kill(): void {
    this.#child.kill("SIGKILL")
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill()
    await this.#ended
  }
}

/** Layers as somebody else sees them: a question, an answer. */
class ViewProcess implements ImageView {
  readonly #running: Running

  constructor(running: Running) {
    this.#running = running
  }

  async stat(place: Place): Promise<Seen | undefined> {
    return (await this.#ask({ see: "stat", place })) as Seen | undefined
  }

  async link(place: Place): Promise<string> {
    return (await this.#ask({ see: "link", place })) as string
  }

  async resolve(place: Place): Promise<Place> {
    return (await this.#ask({ see: "resolve", place })) as Place
  }

  async text(place: Place, bytesMax: number): Promise<string | undefined> {
    return (await this.#ask({ see: "text", place, bytesMax })) as string | undefined
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#running[Symbol.asyncDispose]()
  }

  #ask(look: Look): Promise<unknown> {
    this.#running.ask(look)
    return this.#running.told()
  }
}

function onAbort(signal: AbortSignal | undefined, work: () => void): Disposable {
  signal?.addEventListener("abort", work)
  return { [Symbol.dispose]: () => signal?.removeEventListener("abort", work) }
}
