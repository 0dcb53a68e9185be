import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import { isId } from "@warren/base/id.ts"
import type { Graft, SandboxId, SandboxSpec, SnapshotId } from "../sandbox-spec.ts"
import { readRecord, type Record, type Store } from "./store.ts"
import type { Owned, Volume } from "./volume.ts"

/**
 * Frozen copies of sandboxes' folders, beside the sandboxes on the same volume. Whoever begins with one gets a copy of their own, so
 * nothing ever stands on a snapshot and no chain of layers grows.
 */
export class Snapshots {
  readonly #store: Store
  readonly #volume: Volume

  constructor(store: Store, volume: Volume) {
    this.#store = store
    this.#volume = volume
  }

  async take(id: SandboxId, as: SnapshotId): Promise<void> {
    const record = this.#store.record(id)
    if (!record) throw new Fault("not_found", "there is no such sandbox", { subject: `sandbox:${id}` })
    const folder = this.#folder(as)
    if (existsSync(folder))
      throw new Fault("conflict", "there is a snapshot with that id", { subject: `snapshot:${as}` })
    await this.#volume.snapshot(this.#store.places(id).folder, folder, record.spec.limits.diskBytes)
    failpoint("driver/snapshot")
  }

  /** The folder of a new sandbox that begins with `spec.from`. Not whole before it has a record of its own. */
  async restore(from: SnapshotId, spec: SandboxSpec, ownedBy: (idBase: number) => Owned | undefined): Promise<void> {
    const { idBase } = this.#recordOf(from, spec)
    await this.#volume.restore(this.#folder(from), this.#store.places(spec.id).folder, {
      bytesMax: spec.limits.diskBytes,
      owned: ownedBy(idBase),
    })
  }

  async remove(id: SnapshotId): Promise<void> {
    await this.#volume.remove(this.#folder(id))
  }

  list(): SnapshotId[] {
    return readdirSync(this.#store.root).filter((name): name is SnapshotId => isId("snp", name))
  }

  /** Takes away what was being copied when its maker died. */
  async sweep(): Promise<void> {
    for (const name of readdirSync(this.#store.root)) {
      if (name.startsWith("snp_") && !isId("snp", name)) await this.#volume.remove(join(this.#store.root, name))
    }
  }

  /** Of the sandbox it was taken of. Refuses an image that the layers would not lie on as they did. */
  #recordOf(from: SnapshotId, spec: SandboxSpec): Record {
    const record = readRecord(this.#folder(from))
    if (!record) throw new Fault("not_found", "there is no such snapshot", { subject: `snapshot:${from}` })
    if (places(record.spec.image.grafts) !== places(spec.image.grafts)) {
      throw new Fault("invalid", "the snapshot was taken of a sandbox of another image", {
        subject: `snapshot:${from}`,
      })
    }
    return record
  }

  #folder(id: SnapshotId): string {
    if (!isId("snp", id)) throw new Fault("invalid", "that is not the id of a snapshot")
    return join(this.#store.root, id)
  }
}

/** Each graft has a layer by its number. */
function places(grafts: readonly Graft[] = []): string {
  return grafts.map(({ to }) => to).join("\n")
}
