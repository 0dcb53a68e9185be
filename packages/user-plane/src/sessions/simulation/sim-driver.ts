import { Fault } from "@warren/base/fault.ts"
import type { Abilities, Driver, Pausable, Sandbox, Snapshotting } from "@warren/drivers/driver.ts"
import type { SandboxId, SandboxSpec, SnapshotId } from "@warren/drivers/sandbox-spec.ts"
import type { Life } from "./world.ts"

const unheard = (): never => {
  throw new Fault("unsupported", "nothing runs in a simulated sandbox")
}

/** Sandboxes that are entries in a table: what the interface promises, in no time. A call may be told to fail, half-way. */
export class SimDriver implements Driver, Snapshotting {
  readonly name = "oci"
  readonly abilities: Abilities = { pause: true, snapshot: true, rootInside: true, diskLimit: true, reasons: {} }
  readonly #life: Life

  constructor(life: Life) {
    this.#life = life
  }

  probe = async () => []

  async create(spec: SandboxSpec, signal: AbortSignal): Promise<void> {
    await this.#step(signal)
    const { boxes, snapshots } = this.#life.world
    if (boxes.has(spec.id)) throw new Fault("conflict", "there is a sandbox with that id")
    const files = spec.from === undefined ? "" : snapshots.get(spec.from)
    if (files === undefined) throw new Fault("not_found", "there is no such snapshot")
    boxes.set(spec.id, { files, isWhole: false })
    try {
      await this.#step(signal)
      boxes.set(spec.id, { files, isWhole: true })
    } catch (failure) {
      // A dead one takes nothing back.
      if (!this.#life.isOver) boxes.delete(spec.id)
      throw failure
    }
  }

  async start(id: SandboxId, signal: AbortSignal): Promise<Sandbox> {
    await this.#step(signal)
    const box = this.#life.world.boxes.get(id)
    if (!box?.isWhole) throw new Fault("not_found", "there is no such sandbox")
    if (box.process) throw new Fault("conflict", "the sandbox is running")
    this.#life.world.start(id)
    try {
      await this.#step(signal)
    } catch (failure) {
      if (!this.#life.isOver) this.#life.world.end(id)
      throw failure
    }
    return this.#sandbox(id)
  }

  async stop(id: SandboxId): Promise<void> {
    await this.#step()
    this.#life.world.end(id)
    await this.#life.moment()
  }

  async destroy(id: SandboxId): Promise<void> {
    await this.#step()
    this.#life.world.end(id)
    await this.#life.moment()
    this.#life.world.boxes.delete(id)
  }

  async exists(id: SandboxId): Promise<boolean> {
    return this.#life.world.boxes.get(id)?.isWhole ?? false
  }

  async *adopt(): AsyncGenerator<Sandbox, void, void> {
    const { boxes } = this.#life.world
    for (const [id, { isWhole, process }] of [...boxes]) {
      await this.#life.moment()
      if (!isWhole) boxes.delete(id)
      else if (process) {
        process.isFrozen = false
        yield this.#sandbox(id)
      }
    }
  }

  async snapshot(id: SandboxId, as: SnapshotId): Promise<void> {
    await this.#step()
    const box = this.#life.world.boxes.get(id)
    if (!box) throw new Fault("not_found", "there is no such sandbox")
    this.#life.world.snapshots.set(as, box.files)
    await this.#step()
  }

  async removeSnapshot(id: SnapshotId): Promise<void> {
    await this.#step()
    this.#life.world.snapshots.delete(id)
  }

  async listSnapshots(): Promise<readonly SnapshotId[]> {
    await this.#life.moment()
    return [...this.#life.world.snapshots.keys()]
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #sandbox(id: SandboxId): Sandbox & Pausable {
    const box = this.#life.world.boxes.get(id)
    const process = box?.process
    if (!process) throw new Fault("unavailable", "the sandbox has ended")
    const freeze = async (isFrozen: boolean): Promise<void> => {
      await this.#step()
      if (box.process !== process) throw new Fault("unavailable", "the sandbox has ended")
      process.isFrozen = isFrozen
      await this.#life.moment()
    }
    return {
      id,
      ended: process.ended,
      isRunning: () => box.process === process,
      connect: unheard,
      posture: unheard,
      stats: unheard,
      oomKills: () => 0,
      pause: () => freeze(true),
      resume: () => freeze(false),
    }
  }

  async #step(signal?: AbortSignal): Promise<void> {
    await this.#life.moment()
    signal?.throwIfAborted()
    if (this.#life.failsIn > 0 && --this.#life.failsIn === 0)
      throw new Fault("unavailable", "the driver was told to fail")
  }
}
