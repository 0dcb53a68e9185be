import { closeSync, openSync, readdirSync, readFileSync, rmSync, statfsSync, writeSync } from "node:fs"
import { join } from "node:path"
import { newId } from "@warren/base/id.ts"
import { createLog } from "@warren/base/log.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest"
import type { Sandbox } from "../../driver.ts"
import { defaultLimits, type Image, type SandboxId, type SandboxSpec } from "../../sandbox-spec.ts"
import { specOf } from "../../spec-of.ts"
import { openOciDriver, type OciDriver, type OciOptions } from "../driver.ts"
import { hostImage } from "../host-image.ts"
import { never, text } from "./fixture.ts"
import { programs } from "./subject.ts"

export const MiB = 1024 * 1024
export const firstBytes = 256 * MiB

/** A root with a volume for each test of the block it is made in, opened and closed as the test says. */
export class VolumeWorld {
  /** Another one for each test; what is put here before it opens the driver is used instead. */
  root = ""
  logged: string[] = []
  #temp: TempFolder | undefined
  #image: Image | undefined
  #driver: OciDriver | undefined

  constructor() {
    beforeAll(async () => {
      this.#temp = await TempFolder.make()
      this.#image = await hostImage(join(this.path, "image"))
    })
    afterAll(() => this.#temp?.[Symbol.asyncDispose]())
    beforeEach(() => {
      this.root = join(this.path, newId("sbx"))
      this.logged = []
    })
    afterEach(async () => {
      if (this.#driver) await this.close(true)
      await this.detached()
      rmSync(this.root, { recursive: true, force: true })
    })
  }

  /** A folder that is there as long as the tests. */
  get path(): string {
    if (!this.#temp) throw new Error("there is no folder yet")
    return this.#temp.path
  }

  get driver(): OciDriver {
    if (!this.#driver) throw new Error("the driver is not open")
    return this.#driver
  }

  get file(): string {
    return join(this.root, "volume.btrfs")
  }

  get folder(): string {
    return join(this.root, "volume")
  }

  /** What the driver says about its volume, if there is anything. */
  get reason(): string | undefined {
    return this.driver.abilities.reasons["volume"]
  }

  get broken(): string[] {
    return readdirSync(this.root).filter((name) => name.includes(".broken-"))
  }

  get sandboxes(): SandboxId[] {
    return readdirSync(this.folder).filter((name): name is SandboxId => name.startsWith("sbx_"))
  }

  async open(volume: OciOptions["volume"] = { firstBytes }): Promise<void> {
    const log = createLog((line) => void this.logged.push(line))
    this.#driver = await openOciDriver({ root: this.root, programs, log, volume })
  }

  async close(isFinal = false): Promise<void> {
    if (isFinal) for (const id of this.sandboxes) await this.#driver?.destroy(id)
    await this.#driver?.[Symbol.asyncDispose]()
    this.#driver = undefined
  }

  /** The kernel writes back what is left, and then lets go of the file. */
  async detached(): Promise<void> {
    await expect.poll(() => loopsOf(this.root), { timeout: 30_000 }).toEqual([])
  }

  async start(changes: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    if (!this.#image) throw new Error("there is no image yet")
    const spec = specOf(this.#image, { limits: { ...defaultLimits, diskBytes: 2 * 1024 ** 3 }, ...changes })
    await this.driver.create(spec, never)
    return this.driver.start(spec.id, never)
  }

  async restart(id: SandboxId): Promise<Sandbox> {
    await this.driver.stop(id)
    return this.driver.start(id, never)
  }

  /** A stopped sandbox with a note, the driver closed and the file in nobody's hands. */
  async left(): Promise<SandboxId> {
    const { id } = await this.start()
    const write = "echo kept > /workspace/note; head -c 30m /dev/urandom > /workspace/data; sync"
    await text(await this.restart(id), write)
    await this.driver.stop(id)
    await this.close()
    await this.detached()
    return id
  }

  async note(id: SandboxId): Promise<string> {
    return text(await this.restart(id), "cat /workspace/note")
  }
}

export function sizeOf(path: string): number {
  return statfsSync(path).blocks * statfsSync(path).bsize
}

/** Until nothing fits any more. */
export function fillUp(path: string): void {
  const fd = openSync(path, "w")
  try {
    for (const bytes of [10 * MiB, MiB, 4096]) {
      try {
        for (;;) writeSync(fd, Buffer.alloc(bytes, 1))
      } catch {
        // The next smaller piece may fit.
      }
    }
  } finally {
    closeSync(fd)
  }
}

function loopsOf(root: string): string[] {
  return readdirSync("/sys/block").filter((name) => {
    try {
      return readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8").startsWith(`${root}/`)
    } catch {
      return false
    }
  })
}
