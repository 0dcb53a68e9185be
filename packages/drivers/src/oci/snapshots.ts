import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { isId } from "@warren/base/id.ts"
import type { Image, SandboxId, SnapshotId } from "../sandbox-spec.ts"
import { layers } from "./start-request.ts"
import type { Store } from "./store.ts"
import type { Volume } from "./volume.ts"

/** Frozen copies of sandboxes' layers, beside the sandboxes on the same volume. */
export class Snapshots {
  readonly #store: Store
  readonly #volume: Volume

  constructor(store: Store, volume: Volume) {
    this.#store = store
    this.#volume = volume
  }

  async take(id: SandboxId, as: SnapshotId): Promise<Image> {
    const record = this.#store.record(id)
    if (!record) throw new Fault("not_found", "there is no such sandbox", { subject: `sandbox:${id}` })
    if (!this.#volume.snapshot) throw new Fault("unsupported", `layers cannot be frozen: ${this.#volume.unlimited}`)
    const places = this.#store.places(id)
    const folder = this.#folder(as)
    await this.#volume.snapshot(places.folder, folder, record.spec.limits.diskBytes)
    const { image } = record.spec
    // The copy has everything where the sandbox has it.
    const [root, ...grafted] = layers(record.spec, { ...places, data: join(folder, "data") })
    return {
      layers: [root.upper, ...image.layers],
      grafts: (image.grafts ?? []).map((graft, index) => {
        const changed = grafted[index]?.upper
        return { ...graft, layers: [...(changed === undefined ? [] : [changed]), ...(graft.layers ?? [])] }
      }),
    }
  }

  async remove(id: SnapshotId): Promise<void> {
    const folder = this.#folder(id)
    const user = this.#store.ids().find((sandbox) => this.#isUsedBy(sandbox, folder))
    if (user) throw new Fault("conflict", `sandbox ${user} stands on this snapshot`, { subject: `snapshot:${id}` })
    await this.#volume.remove(folder)
  }

  #isUsedBy(id: SandboxId, folder: string): boolean {
    const image = this.#store.record(id)?.spec.image
    const used = [...(image?.layers ?? []), ...(image?.grafts ?? []).flatMap((graft) => graft.layers ?? [])]
    return used.some((path) => path.startsWith(`${folder}/`))
  }

  #folder(id: SnapshotId): string {
    if (!isId("snp", id)) throw new Fault("invalid", "that is not the id of a snapshot")
    return join(this.#store.root, id)
  }
}
