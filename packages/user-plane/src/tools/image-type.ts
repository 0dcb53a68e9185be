const beginnings: readonly (readonly [string, Buffer])[] = [
  ["image/png", Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])],
  ["image/jpeg", Buffer.from([0xff, 0xd8, 0xff])],
  ["image/gif", Buffer.from("GIF8")],
]

/** By what it begins with: a name says nothing. Undefined: none that a browser shows without running anything. */
export function imageTypeOf(bytes: Buffer): string | undefined {
  const found = beginnings.find(([, beginning]) => bytes.subarray(0, beginning.length).equals(beginning))
  if (found) return found[0]
  const isWebp =
    bytes.subarray(0, 4).toString("latin1") === "RIFF" && bytes.subarray(8, 12).toString("latin1") === "WEBP"
  return isWebp ? "image/webp" : undefined
}
