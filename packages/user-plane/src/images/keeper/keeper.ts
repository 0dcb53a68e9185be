import { mkdirSync } from "node:fs"
import { rm } from "node:fs/promises"
import { Fault } from "@warren/base/fault.ts"
import type { Digest } from "../digest.ts"
import type { Extracted } from "../layer/extract.ts"
import { MergedView, type ImageView, type LayerView } from "../layer/merged.ts"
import { packUpper } from "../layer/pack.ts"
import { unpack, type UnpackOptions } from "../layer/packed.ts"

export type Unpacked = Extracted & { readonly digest: Digest }

/** Who has the files of layers in their hands: whoever does must be able to give them to anybody, and to take them back. */
export interface Keeper {
  /** Makes the folder `root` of an archive. */
  unpack(packed: AsyncIterable<Uint8Array>, options: UnpackOptions): Promise<Unpacked>
  /** The same of what a stopped sandbox has written. */
  repack(upper: string, options: UnpackOptions): Promise<Unpacked>
  /** Layers as one tree, the top one first. */
  view(layers: readonly LayerView[]): ImageView
  /** A folder with all that is in it; not there is fine. */
  remove(path: string): Promise<void>
}

/** This process itself: root, or root of a user namespace. */
export const ownKeeper: Keeper = {
  unpack(packed, options) {
    mkdirSync(options.root, { mode: 0o755 })
    return unpack(packed, options)
  },
  repack(upper, options) {
    return ownKeeper.unpack(packUpper(upper), options)
  },
  view: (layers) => new MergedView(layers),
  // Somebody who was killed may take a moment to stop writing there.
  remove: (path) => rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }),
}

/** An ordinary user's, whose driver has no namespace for them. Layers there were none of: what there is can be removed. */
export const noKeeper: Keeper = {
  unpack: () => Promise.reject(refusal()),
  repack: () => Promise.reject(refusal()),
  view: () => {
    throw refusal()
  },
  remove: (path) => ownKeeper.remove(path),
}

function refusal(): Fault {
  return new Fault("unsupported", "layers keep the owners of their files, and only root can give files away", {
    hint: "use the driver oci, which has a user namespace for it, or run as root",
  })
}
