import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { WrittenLayer } from "../driver.ts"
import type { SandboxId } from "../sandbox-spec.ts"
import { layers } from "./start-request.ts"
import type { Store } from "./store.ts"
import type { Volume } from "./volume.ts"

/** On the volume itself: clones cannot leave it, and by another mount of the same disk they could not either. */
export function imagesFolderOf(volume: Volume): string | undefined {
  return volume.clone && join(volume.folder, "images")
}

/** What a sandbox that does not run has written. */
export function writtenLayer(id: SandboxId, store: Store, volume: Volume): WrittenLayer {
  const record = store.record(id)
  if (!record) throw new Fault("not_found", "there is no such sandbox", { subject: `sandbox:${id}` })
  const places = store.places(id)
  const { spec } = record
  return {
    folder: layers(spec, places)[0].upper,
    image: spec.image,
    cloneTo: async (to) => {
      const images = imagesFolderOf(volume)
      if (images === undefined || !to.startsWith(`${images}/`)) return undefined
      await volume.clone?.(places.folder, to, spec.limits.diskBytes)
      return layers(spec, { ...places, data: join(to, "data") })[0].upper
    },
  }
}
