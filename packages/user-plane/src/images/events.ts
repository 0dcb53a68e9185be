import type { Digest } from "./digest.ts"

/** What happens while an image is brought. Bytes are of the packed layer. */
export type ImageEvent =
  | { readonly kind: "resolved"; readonly image: Digest; readonly layers: number; readonly bytes: number }
  | { readonly kind: "layer.present"; readonly layer: Digest }
  | { readonly kind: "layer.downloading"; readonly layer: Digest; readonly bytes: number; readonly totalBytes: number }
  | { readonly kind: "layer.extracting"; readonly layer: Digest }
  | { readonly kind: "layer.done"; readonly layer: Digest }
  | {
      readonly kind: "step"
      readonly index: number
      readonly total: number
      readonly text: string
      readonly isCached: boolean
    }
  | { readonly kind: "output"; readonly text: string }

export type Progress = (event: ImageEvent) => void
