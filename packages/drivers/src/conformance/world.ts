import { randomInt } from "node:crypto"
import { afterAll, beforeAll } from "vitest"
import { lackOf, type Driver, type Sandbox } from "../driver.ts"
import { exec, type ExecResult, type SpawnOptions } from "../init/exec.ts"
import type { Image, SandboxId, SandboxSpec } from "../sandbox-spec.ts"
import { specOf } from "../spec-of.ts"

/** A driver under test, with an image it can start. */
export interface Subject {
  open(): Promise<Driver>
  image(): Promise<Image>
}

export const never = new AbortController().signal
export const commandLines = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"

/** A time to sleep that nothing else on this machine sleeps: some drivers show the processes of others, too. */
export const longSleep = (): string => `sleep ${randomInt(1_000_000, 1_000_000_000)}`

/** One driver for all cases, and what they make with it, which is gone after them. */
export class World {
  readonly #subject: Subject
  readonly #made: SandboxId[] = []
  #driver: Driver | undefined
  #image: Image | undefined

  constructor(subject: Subject) {
    this.#subject = subject
    beforeAll(async () => {
      this.#driver = await subject.open()
      this.#image = await subject.image()
    })
    afterAll(async () => {
      for (const id of this.#made) await this.driver.destroy(id)
      await this.driver[Symbol.asyncDispose]()
    })
  }

  get driver(): Driver {
    if (!this.#driver) throw new Error("the driver is not open")
    return this.#driver
  }

  get image(): Image {
    if (!this.#image) throw new Error("there is no image yet")
    return this.#image
  }

  /** As the next process does it. */
  async reopen(): Promise<void> {
    await this.driver[Symbol.asyncDispose]()
    this.#driver = await this.#subject.open()
  }

  async create(changes: Partial<SandboxSpec> = {}): Promise<SandboxId> {
    const asked = specOf(this.image, changes)
    // Where the disk cannot be limited, asking for it is refused; a case of the limits sees to that.
    const spec: SandboxSpec = { ...asked, limits: { ...asked.limits, ...this.#lacking() } }
    this.#made.push(spec.id)
    await this.driver.create(spec, never)
    return spec.id
  }

  async start(changes: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    return this.driver.start(await this.create(changes), never)
  }

  #lacking(): Partial<SandboxSpec["limits"]> {
    return {
      ...(this.driver.abilities.diskLimit ? {} : { diskBytes: 0 }),
      ...(lackOf(this.driver, "limits") === undefined ? {} : { mayBeUnlimited: true }),
    }
  }
}

export function sh(sandbox: Sandbox, command: string, more: Partial<SpawnOptions> = {}): Promise<ExecResult> {
  return exec(sandbox, { argv: ["sh", "-c", command], ...more })
}

export async function text(sandbox: Sandbox, command: string, more: Partial<SpawnOptions> = {}): Promise<string> {
  return (await sh(sandbox, command, more)).stdout.toString()
}
