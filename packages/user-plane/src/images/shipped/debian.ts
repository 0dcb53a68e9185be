import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { Driver, Sandbox } from "@warren/drivers/driver.ts"
import { Execution } from "@warren/drivers/init/exec.ts"
import type { Image } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import type { Digest } from "../digest.ts"
import type { Progress } from "../events.ts"
import type { Images } from "../images.ts"
import { describe } from "../import/sources.ts"
import { platformOf } from "../manifest.ts"
import { workerLimits } from "../worker-limits.ts"
import type { Workshop } from "./workshop.ts"

interface DebianOptions {
  readonly images: Images
  readonly driver: Driver
  readonly workshop: Workshop
  /** The folder with the scripts. */
  readonly folder: string
  readonly name: string
  readonly progress: Progress
  readonly signal: AbortSignal
}

const stageMs = 20 * 60_000
/** Of what a script that failed said, in its fault. */
const tailChars = 2000
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/**
 * A small Debian from its packages, in two sandboxes: one of the machine itself fetches and unpacks them, one of the tree that
 * comes of it installs them. So nothing of it is ever run beside the machine's own files, and nothing needs to be mounted.
 */
export async function makeDebian(options: DebianOptions): Promise<Digest> {
  const { images, name, signal } = options
  const pins: Disposable[] = []
  const pin = (layers: readonly Digest[]): void => void pins.push(images.store.pin(layers))
  const stage = async (index: number, script: string, image: Image): Promise<Digest> => {
    options.progress({ kind: "step", index, total: 2, text: `debian: ${script}`, isCached: false })
    const text = await readFile(join(options.folder, script), "utf8")
    const { sandbox: changes } = options.workshop
    const spec = specOf(image, { ...changes, limits: workerLimits(options.driver, changes.limits) })
    return await images.withWorker(options.driver, spec, signal, async (sandbox) => {
      const { digest } = await images.store.add(archiveFrom(sandbox, script, text, options), { signal, pin })
      return digest
    })
  }
  try {
    const tree = await stage(1, "unpack", await images.use("host", "debian"))
    const layer = await stage(2, "configure", await images.stack([tree], pin, signal))
    const { os, architecture } = platformOf(undefined)
    const config = { Env: [`PATH=${path}`], Cmd: ["/bin/bash"] }
    const text = JSON.stringify({ os, architecture, config, rootfs: { type: "layers", diff_ids: [layer] } })
    return await images.add(describe(text, [layer]), [name], signal)
  } finally {
    for (const one of pins) one[Symbol.dispose]()
  }
}

/** What a script writes to its output; what it says besides is progress. */
async function* archiveFrom(
  sandbox: Sandbox,
  name: string,
  script: string,
  { workshop, progress, signal }: DebianOptions,
): AsyncGenerator<Buffer, void, void> {
  const env = { PATH: path, ...workshop.env, SOURCES: workshop.sourcesAt }
  const argv = ["/bin/sh", "-c", script]
  await using execution = await Execution.start(sandbox, { argv, env, user: "root", timeoutMs: stageMs }, signal)
  let tail = ""
  for await (const { stream, bytes } of execution.output()) {
    // A piece of output is good until the next: the archive is read later.
    if (stream === "stdout") yield Buffer.from(bytes)
    else {
      tail = (tail + bytes.toString()).slice(-tailChars)
      progress({ kind: "output", text: bytes.toString() })
    }
  }
  const { code, signal: killed, reason } = await execution.ended()
  if (code === 0) return
  throw new Fault("unavailable", `making a Debian failed: ${name} ended with ${killed ?? code} (${reason})`, {
    hint: tail,
  })
}
