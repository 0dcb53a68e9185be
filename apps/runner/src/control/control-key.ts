import { createPublicKey, type KeyObject } from "node:crypto"
import { readFileSync } from "node:fs"

/** How often the file is looked at again because of a signature that does not fit. */
const rereadMs = 500

/**
 * The public key of the control plane, from its file. It may not be there yet (the control plane makes it at its first
 * start), and it may be replaced; so it is read again when a signature does not fit.
 */
export class ControlKey {
  readonly #path: string
  readonly #monotonic: () => number
  readonly #onChange: () => void
  #readAt = Number.NEGATIVE_INFINITY
  #text = ""
  #keys: readonly KeyObject[] = []

  constructor(path: string, monotonic: () => number, onChange: () => void) {
    this.#path = path
    this.#monotonic = monotonic
    this.#onChange = onChange
  }

  keys(isNewWanted: boolean): readonly KeyObject[] {
    const isStale = this.#keys.length === 0 || (isNewWanted && this.#monotonic() - this.#readAt > rereadMs)
    if (isStale) this.#read()
    return this.#keys
  }

  #read(): void {
    this.#readAt = this.#monotonic()
    const text = textOf(this.#path)
    if (text === this.#text) return
    this.#text = text
    this.#keys = keysOf(text)
    this.#onChange()
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

/** Anything but one Ed25519 public key is no key at all. */
function keysOf(text: string): KeyObject[] {
  try {
    const key = createPublicKey(text)
    return key.asymmetricKeyType === "ed25519" ? [key] : []
  } catch {
    return []
  }
}
