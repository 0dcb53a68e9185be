import { spawn } from "node:child_process"
import { pipeline } from "node:stream/promises"
import { createGunzip } from "node:zlib"
import { Fault } from "@warren/base/fault.ts"
import type { ArchiveLimits } from "../limits.ts"

type Bytes = AsyncIterable<Uint8Array>
type Packing = "gzip" | "zstd" | "plain"

/** The most memory a zstd archive may ask of its reader. */
const zstdMemory = "256MB"
const nobody = 65_534
const chunkBytes = 256 * 1024

/** The archive inside, whatever it is packed with, up to the limits. */
export async function* decompress(packed: Bytes, limits: ArchiveLimits): AsyncGenerator<Buffer, void, void> {
  const source = packed[Symbol.asyncIterator]()
  const count = { in: 0, out: 0 }
  async function* counted(first: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
    for (let chunk: Uint8Array | undefined = first; chunk;) {
      count.in += chunk.length
      yield chunk
      const next = await source.next()
      chunk = next.done ? undefined : next.value
    }
  }
  try {
    const first = await beginning(source)
    const packing = packingOf(first)
    const bytes = packing === "plain" ? counted(first) : unpackers[packing](counted(first))
    for await (const chunk of bytes) {
      count.out += chunk.length
      checkBomb(count, limits)
      yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    }
  } finally {
    await source.return?.()
  }
}

function packingOf(bytes: Uint8Array): Packing {
  const [a, b, c, d] = bytes
  if (a === 0x1f && b === 0x8b) return "gzip"
  return a === 0x28 && b === 0xb5 && c === 0x2f && d === 0xfd ? "zstd" : "plain"
}

/** Enough bytes to tell by. */
async function beginning(source: AsyncIterator<Uint8Array>): Promise<Uint8Array> {
  let bytes = Buffer.alloc(0)
  while (bytes.length < 4) {
    const next = await source.next()
    if (next.done) break
    bytes = Buffer.concat([bytes, next.value])
  }
  return bytes
}

function checkBomb(count: { in: number; out: number }, limits: ArchiveLimits): void {
  if (count.out > limits.unpackedBytesMax) {
    throw new Fault("limit", `the archive is larger than ${limits.unpackedBytesMax} bytes when unpacked`)
  }
  if (count.out > limits.ratioFromBytes && count.out > count.in * limits.ratioMax) {
    throw new Fault("limit", `the archive unpacks to more than ${limits.ratioMax} times its size`)
  }
}

const unpackers: Readonly<Record<Exclude<Packing, "plain">, (packed: Bytes) => Bytes>> = { gzip: gunzip, zstd: unzstd }

async function* gunzip(packed: Bytes): AsyncGenerator<Uint8Array, void, void> {
  const unzip = createGunzip({ chunkSize: chunkBytes })
  const flowing = pipeline(packed, unzip)
  // Told below, where the reader meets it.
  flowing.catch(() => undefined)
  try {
    for await (const chunk of unzip) yield chunk as Uint8Array
    await flowing
  } catch (cause) {
    throw cause instanceof Fault ? cause : new Fault("invalid", "the archive is damaged: it is no gzip", { cause })
  }
}

/** Node 20 has no zstd. The program runs as nobody: it is all that C ever sees of an archive. */
async function* unzstd(packed: Bytes): AsyncGenerator<Uint8Array, void, void> {
  const child = spawn("zstd", ["--decompress", "--stdout", "--quiet", `--memory=${zstdMemory}`], {
    stdio: ["pipe", "pipe", "pipe"],
    ...(process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {}),
    cwd: "/",
    env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
  })
  const ended = new Promise<Fault | undefined>((resolve) => {
    child.once("error", (cause) =>
      resolve(new Fault("unsupported", "could not run zstd", { cause, hint: "apt-get install zstd" })),
    )
    child.once("close", (code) =>
      resolve(code === 0 ? undefined : new Fault("invalid", "the archive is damaged: it is no zstd")),
    )
  })
  child.stderr.resume()
  // What zstd does not want any more is told by how it ends; what goes wrong before it is told as it is.
  let failure: unknown
  const feeding = pipeline(packed, child.stdin).catch((thrown: unknown) => (failure = thrown))
  try {
    for await (const chunk of child.stdout) yield chunk as Uint8Array
    const fault = await ended
    await feeding
    if (failure instanceof Fault) throw failure
    if (fault) throw fault
  } finally {
    child.kill("SIGKILL")
    await ended
  }
}
