/** What one archive may ask of us. Whatever goes past one of these is refused by its name. */
export interface ArchiveLimits {
  readonly entriesMax: number
  /** Of everything that comes out of the decompressor. */
  readonly unpackedBytesMax: number
  /** Bytes out for each byte in, once more than `ratioFromBytes` have come out. */
  readonly ratioMax: number
  readonly ratioFromBytes: number
  readonly pathBytesMax: number
  readonly depthMax: number
  /** Of the attributes of one entry, names and values. */
  readonly xattrBytesMax: number
  /** Of one extended header. */
  readonly headerBytesMax: number
}

export const archiveLimits: ArchiveLimits = {
  entriesMax: 1_000_000,
  unpackedBytesMax: 64 * 2 ** 30,
  ratioMax: 200,
  ratioFromBytes: 64 * 2 ** 20,
  pathBytesMax: 4095,
  depthMax: 100,
  xattrBytesMax: 64 * 1024,
  headerBytesMax: 2 ** 20,
}

export const nameBytesMax = 255
/** What the kernel stacks in one overlay is 500; what the launcher takes is 128, and one of them may be ours. */
export const layersMax = 127
export const manifestBytesMax = 4 * 2 ** 20
export const configBytesMax = 8 * 2 ** 20
