import { Fault } from "@warren/base/fault.ts"
import { canLendLayers, type Driver, type Layering } from "@warren/drivers/driver.ts"
import type { Image } from "@warren/drivers/sandbox-spec.ts"
import type { Digest } from "./digest.ts"
import { layersMax } from "./limits.ts"
import { ImageConfig, readJson } from "./manifest.ts"
import type { LayerStore } from "./store.ts"

interface Base {
  readonly config: string
  /** Without what Warren puts on top; the bottom one first. */
  readonly layers: readonly Digest[]
}

/** A driver that lends what sandboxes have written. */
export function lender(driver: Driver): Driver & Layering {
  if (canLendLayers(driver)) return driver
  throw new Fault("unsupported", `the driver ${driver.name} cannot turn what a sandbox has written into an image`)
}

/** The image of the store that a sandbox stands on. */
export function baseOf(store: LayerStore, { layers, grafts }: Image): Base {
  if (grafts && grafts.length > 0) {
    throw new Fault("invalid", "the sandbox stands on the machine itself, which is not made of layers", {
      hint: "take a snapshot of it, or start it from an image",
    })
  }
  const stack = layers.join(":")
  const image = store.catalog.images().find((one) => one.layers.map((layer) => store.folder(layer)).join(":") === stack)
  if (!image) throw new Fault("invalid", "the sandbox does not stand on an image of this store")
  const { rootfs } = readJson("the config of the image", ImageConfig, image.config)
  return { config: image.config, layers: rootfs.diff_ids }
}

/** A config with other layers. What it says of how it came to be is not true any more. */
export function withLayers(config: string, layers: readonly Digest[]): string {
  const { history: _, created: __, ...kept } = JSON.parse(config) as Record<string, unknown>
  return JSON.stringify({ ...kept, rootfs: { type: "layers", diff_ids: layers } })
}

export function checkHeight(layers: readonly Digest[]): void {
  if (layers.length > layersMax) throw new Fault("limit", `an image has at most ${layersMax} layers`)
}
