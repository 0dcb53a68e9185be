import { readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { isId } from "@warren/base/id.ts"
import { createLog } from "@warren/base/log.ts"
import { afterAll, beforeAll, beforeEach, expect } from "vitest"
import type { Driver, Sandbox } from "../../driver.ts"
import { exec, type ExecResult, type SpawnOptions } from "../../init/exec.ts"
import { defaultLimits, type Image, type Limits, type SandboxId, type SandboxSpec } from "../../sandbox-spec.ts"
import { specOf } from "../../spec-of.ts"
import type { OciOptions } from "../driver.ts"
import { lasting, settled, type Footprint } from "./invariants.ts"
import { ociSubject } from "./subject.ts"

export const never = new AbortController().signal

type Changes = Omit<Partial<SandboxSpec>, "limits"> & { readonly limits?: Partial<Limits> }

/**
 * A driver for the tests of one file, and a check at the end that the host is as it was before the first of them. Called at the
 * top of a file.
 */
export class Fixture {
  readonly #subject: ReturnType<typeof ociSubject>
  readonly #made = new Set<SandboxId>()
  #driver: Driver | undefined
  #image: Image | undefined
  /** What the driver logged. */
  readonly logged: string[] = []

  constructor(options: Partial<OciOptions> = {}) {
    const log = createLog((line) => void this.logged.push(line))
    this.#subject = ociSubject({ log, ...options })
    let before: Footprint | undefined
    beforeAll(async () => {
      // Once through everything: what is made once and kept is not a leak.
      await this.open()
      await this.driver.destroy((await this.start()).id)
      await this.close()
      before = { ...(await settled(this.root)), loops: [] }
      expect(await lasting(before, this.root)).toEqual([])
      await this.open()
    })
    // A test that closed it and failed is not the trouble of the next.
    beforeEach(async () => {
      if (!this.#driver) await this.open()
    })
    afterAll(async () => {
      try {
        if (!this.#driver) await this.open()
        await this.destroyAll()
        await this.close()
        if (before) expect(await lasting(before, this.root)).toEqual([])
      } finally {
        await this.close()
        rmSync(this.root, { recursive: true, force: true })
      }
    })
  }

  get root(): string {
    return this.#subject.root
  }

  get driver(): Driver {
    if (!this.#driver) throw new Error("the driver is not open")
    return this.#driver
  }

  get image(): Image {
    if (!this.#image) throw new Error("there is no image yet")
    return this.#image
  }

  async open(): Promise<void> {
    this.#driver = await this.#subject.open()
    this.#image = await this.#subject.image()
  }

  async close(): Promise<void> {
    await this.#driver?.[Symbol.asyncDispose]()
    this.#driver = undefined
  }

  spec({ limits, ...changes }: Changes = {}): SandboxSpec {
    const { diskLimit } = this.driver.abilities
    const usual = { ...defaultLimits, ...(diskLimit ? {} : { diskBytes: 0 }) }
    const spec = specOf(this.image, { ...changes, limits: { ...usual, ...limits } })
    // What is not an id cannot be destroyed either.
    if (isId("sbx", spec.id)) this.#made.add(spec.id)
    return spec
  }

  async create(changes: Changes = {}): Promise<SandboxId> {
    const spec = this.spec(changes)
    await this.driver.create(spec, never)
    return spec.id
  }

  async start(changes: Changes = {}): Promise<Sandbox> {
    return this.driver.start(await this.create(changes), never)
  }

  async destroy(id: SandboxId): Promise<void> {
    await this.driver.destroy(id)
    this.#made.delete(id)
  }

  /** A sandbox for as long as a test. */
  async use(changes: Changes = {}): Promise<Sandbox & AsyncDisposable> {
    const sandbox = await this.start(changes)
    return Object.assign(sandbox, { [Symbol.asyncDispose]: () => this.destroy(sandbox.id) })
  }

  async destroyAll(): Promise<void> {
    // Also what a process of a test made in the same folder.
    const found = readdirSync(join(this.root, "volume")).filter((name): name is SandboxId => isId("sbx", name))
    const ids = new Set([...this.#made, ...found])
    const destroyed = await Promise.allSettled([...ids].map((id) => this.driver.destroy(id)))
    this.#made.clear()
    expect(destroyed.filter(({ status }) => status === "rejected")).toEqual([])
  }

  /** Asserts that `work` leaves nothing of a sandbox behind. */
  async leavesNothing(work: () => Promise<void>): Promise<void> {
    const before = await settled(this.root)
    await work()
    expect(await lasting(before, this.root)).toEqual([])
  }
}

export function sh(sandbox: Sandbox, command: string, more: Partial<SpawnOptions> = {}): Promise<ExecResult> {
  return exec(sandbox, { argv: ["sh", "-c", command], ...more })
}

export async function text(sandbox: Sandbox, command: string, more: Partial<SpawnOptions> = {}): Promise<string> {
  return (await sh(sandbox, command, more)).stdout.toString()
}

/** Runs commands in another sandbox for as long as `work` takes: every one of them must succeed. */
export async function whileOthersWork<T>(neighbour: Sandbox, work: () => Promise<T>): Promise<T> {
  const over = { value: false }
  const observe = async (): Promise<number> => {
    let count = 0
    do {
      const file = `/workspace/note-${count % 10}`
      expect(await text(neighbour, `echo alive ${count} > ${file} && cat ${file}`)).toBe(`alive ${count}\n`)
      count++
    } while (!over.value)
    return count
  }
  const observing = observe()
  // Told at the end, after the work has ended in order.
  observing.catch(() => undefined)
  try {
    return await work()
  } finally {
    over.value = true
    expect(await observing).toBeGreaterThan(0)
  }
}
