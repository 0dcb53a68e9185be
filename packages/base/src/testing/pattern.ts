/** Bytes that show when a part of them is lost, doubled or moved. */
export function pattern(bytes: number, seed = 0): Buffer {
  const made = Buffer.alloc(bytes)
  for (let at = 0; at < bytes; at++) made[at] = (at * 31 + (at >> 8) * 7 + seed) & 0xff
  return made
}
