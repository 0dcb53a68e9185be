import type { ArchiveLimits } from "../limits.ts"
import { finish, newHash, type Digest } from "../digest.ts"
import { ByteSource } from "../tar/byte-source.ts"
import { TarReader } from "../tar/reader.ts"
import { decompress } from "./decompress.ts"
import { extract, type Extracted } from "./extract.ts"

export interface UnpackOptions {
  readonly root: string
  readonly scratch: string
  readonly limits: ArchiveLimits
  /** Whether everything becomes ours, for us to read, whoever it belongs to in the archive. */
  readonly isOurs?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** Extracts a packed archive. `digest` is that of the archive inside (OCI's diff id), so it does not matter how it was packed. */
export async function unpack(
  packed: AsyncIterable<Uint8Array>,
  options: UnpackOptions,
): Promise<Extracted & { readonly digest: Digest }> {
  const hash = newHash()
  async function* hashed(): AsyncGenerator<Buffer, void, void> {
    for await (const chunk of decompress(packed, options.limits)) {
      hash.update(chunk)
      yield chunk
    }
  }
  const source = new ByteSource(hashed())
  try {
    const extracted = await extract(new TarReader(source, options.limits), options)
    await source.drain()
    return { ...extracted, digest: finish(hash) }
  } finally {
    await source.close()
  }
}
