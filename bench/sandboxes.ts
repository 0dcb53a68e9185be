import { existsSync } from "node:fs"
import { mkdir, realpath } from "node:fs/promises"
import { join, resolve } from "node:path"
import { newId } from "@warren/base/id.ts"
import { silentLog } from "@warren/base/log.ts"
import type { Sandbox } from "@warren/drivers/driver.ts"
import { exec } from "@warren/drivers/init/exec.ts"
import { openOciDriver, type OciDriver, type OciOptions } from "@warren/drivers/oci/driver.ts"
import { hostImage } from "@warren/drivers/oci/host-image.ts"
import { defaultLimits, type Image, type SandboxId, type SandboxSpec } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import type { Context } from "./metric.ts"

const dist = resolve("dist")
const libraries = join(dist, "crun-lib")
const programs: OciOptions["programs"] = {
  init: join(dist, "warren-init"),
  launch: join(dist, "warren-launch"),
  libraries: existsSync(libraries) ? libraries : undefined,
}
/** How many are made or taken away at once where that is not what is measured. */
const atOnce = 8
const never = new AbortController().signal

/** Sandboxes for a metric: the real driver on the machine's own image. The context's scope takes all of them away. */
export class Sandboxes implements AsyncDisposable {
  readonly programs = programs
  readonly #root: string
  readonly #image: Image
  readonly #signal: AbortSignal
  readonly #made = new Set<SandboxId>()
  #driver: OciDriver

  private constructor(root: string, image: Image, signal: AbortSignal, driver: OciDriver) {
    this.#root = root
    this.#image = image
    this.#signal = signal
    this.#driver = driver
  }

  /** Skips the metric where there can be none. */
  static async open(context: Context): Promise<Sandboxes> {
    if (process.getuid?.() !== 0) context.skip("sandboxes of the oci driver need root")
    if (!existsSync("/usr/bin/crun")) context.skip("crun is not installed: apt-get install crun")
    for (const program of [programs.init, programs.launch]) {
      if (!existsSync(program)) context.skip(`${program} is not there: npm run build`)
    }
    const folder = await realpath(context.folder)
    const root = join(folder, "d")
    await mkdir(root)
    const image = await hostImage(join(folder, "image"))
    return context.scope.use(new Sandboxes(root, image, context.signal, await openDriver(root)))
  }

  /** One that has written so much, and one that has written 10 MB. */
  static async ofTwoSizes(context: Context, megabytes: number) {
    const sandboxes = await Sandboxes.open(context)
    const [large, small] = [await sandboxes.create(), await sandboxes.create()]
    await sandboxes.write(large, megabytes)
    await sandboxes.write(small, 10)
    return { sandboxes, large, small }
  }

  spec(): SandboxSpec {
    const spec = specOf(
      this.#image,
      this.#driver.abilities.diskLimit ? {} : { limits: { ...defaultLimits, diskBytes: 0 } },
    )
    this.#made.add(spec.id)
    return spec
  }

  /** Makes and starts one. */
  async create(spec = this.spec()): Promise<Sandbox> {
    this.#signal.throwIfAborted()
    await this.#driver.create(spec, never)
    return this.#driver.start(spec.id, never)
  }

  async destroy({ id }: { readonly id: SandboxId }): Promise<void> {
    await this.#driver.destroy(id)
    this.#made.delete(id)
  }

  /** Takes a snapshot, and removes it again when it was measured. */
  async snapshot(sandbox: Sandbox, measured: (work: () => Promise<unknown>) => Promise<number>): Promise<number> {
    const snapshot = newId("snp")
    const taken = await measured(() => this.#driver.snapshot(sandbox.id, snapshot))
    await this.#driver.removeSnapshot(snapshot)
    return taken
  }

  /** Takes a snapshot and starts so many sandboxes from it; all of it is taken away again when it was measured. */
  async fork(
    sandbox: Sandbox,
    count: number,
    measured: (work: () => Promise<unknown>) => Promise<number>,
  ): Promise<number> {
    const from = newId("snp")
    const children = Array.from({ length: count }, () => ({ ...this.spec(), from }))
    const taken = await measured(async () => {
      await this.#driver.snapshot(sandbox.id, from)
      await inParallel(atOnce, count, async (index) => {
        const child = children[index]
        if (child) await this.create(child)
      })
    })
    await this.#driver.removeSnapshot(from)
    await inParallel(atOnce, count, async (index) => {
      const child = children[index]
      if (child) await this.destroy(child)
    })
    return taken
  }

  /** Has a sandbox write so much, and waits until the disk has it. */
  async write(sandbox: Sandbox, megabytes: number): Promise<void> {
    const command = `head -c ${megabytes}MB /dev/urandom > /workspace/data && sync -f /workspace/data`
    const { code } = await exec(sandbox, { argv: ["sh", "-c", command] })
    if (code !== 0) throw new Error(`could not write ${megabytes} MB`)
  }

  async createMany(count: number): Promise<readonly Sandbox[]> {
    const made: Sandbox[] = []
    await inParallel(atOnce, count, async () => void made.push(await this.create()))
    return made
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#destroyAll()
    } catch {
      // Ctrl-C in a terminal reaches the driver's launcher, too. What it can no longer take away, a new one can.
      await this.#driver[Symbol.asyncDispose]()
      this.#driver = await openDriver(this.#root)
      await this.#destroyAll()
    } finally {
      await this.#driver[Symbol.asyncDispose]()
    }
  }

  async #destroyAll(): Promise<void> {
    const ids = [...this.#made]
    await inParallel(atOnce, ids.length, async (index) => {
      const id = ids[index]
      if (id) await this.destroy({ id })
    })
  }
}

function openDriver(root: string): Promise<OciDriver> {
  return openOciDriver({ root, programs, log: silentLog })
}

/** Does `work` `count` times, at most `width` of them at once. All that were begun have ended when this does. */
export async function inParallel(width: number, count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) await work(next++)
  }
  const lanes = await Promise.allSettled(Array.from({ length: width }, lane))
  for (const outcome of lanes) if (outcome.status === "rejected") throw outcome.reason
}

/** Runs `true` to its end. */
export async function execTrue(sandbox: Sandbox): Promise<void> {
  const { code } = await exec(sandbox, { argv: ["true"] })
  if (code !== 0) throw new Error(`true ended with ${code}`)
}
