import { posix } from "node:path"
import { pipeline, Readable } from "node:stream"
import { createGunzip, createGzip } from "node:zlib"
import { Fault } from "@warren/base/fault.ts"
import { filled, poured } from "../transfer.ts"
import { boundaryOf, partsOf } from "./multipart.ts"
import { asThey, ownerOf } from "./rights.ts"
import type { Inside } from "./inside.ts"

const metadataMax = 32

/** A file, or a part of it, as the body of an answer. */
export async function download(inside: Inside, request: Request, given: string): Promise<Response> {
  const { plane, session } = inside
  const path = await inside.path(given)
  const { type, size } = await asThey(inside, (user) => plane.call("file.stat", { session, path, user })).catch(
    (thrown: unknown) => {
      const isAbsent = thrown instanceof Fault && thrown.code === "not_found"
      throw isAbsent ? new Fault("not_found", `path '${given}' does not exist`, { cause: thrown }) : thrown
    },
  )
  if (type === "dir") throw new Fault("invalid", `path '${given}' is a directory`)
  const part = rangeOf(request.headers.get("range"), size)
  const asked = { session, path, ...(part ? { offset: part.from, limit: part.to - part.from + 1 } : {}) }
  const bytes = await asThey(inside, (user) => plane.stream("file.read", { ...asked, user }))
  const pieces = Readable.from(poured(bytes), { objectMode: false })
  // Clients say this and nothing else when they want it; what fetch adds by itself is no wish.
  const isPacked = request.headers.get("accept-encoding") === "gzip" && !part && size > 0
  const body = Readable.toWeb(isPacked ? packed(pieces) : pieces) as ReadableStream<Uint8Array>
  const name = encodeURIComponent(posix.basename(path))
  const headers = {
    "content-type": "application/octet-stream",
    "content-disposition": `inline; filename*=UTF-8''${name}`,
    "accept-ranges": "bytes",
    vary: "Accept-Encoding",
    ...(isPacked
      ? { "content-encoding": "gzip" }
      : { "content-length": String(part ? part.to - part.from + 1 : size) }),
    ...(part ? { "content-range": `bytes ${part.from}-${part.to}/${size}` } : {}),
  }
  return new Response(body, { status: part ? 206 : 200, headers })
}

function packed(pieces: Readable): Readable {
  return pipeline(pieces, createGzip(), () => undefined)
}

function rangeOf(header: string | null, size: number): { from: number; to: number } | undefined {
  const [, from = "", to = ""] = /^bytes=(\d*)-(\d*)$/.exec(header ?? "") ?? []
  if ((from === "" && to === "") || size === 0) return undefined
  const first = from === "" ? Math.max(0, size - Number(to)) : Number(from)
  const last = from === "" || to === "" ? size - 1 : Math.min(Number(to), size - 1)
  return first <= last ? { from: first, to: last } : undefined
}

/** What is sent goes to where it belongs: one file as it is, or any number in a form. */
export async function upload(inside: Inside, request: Request, given: string | undefined): Promise<object[]> {
  const type = request.headers.get("content-type") ?? ""
  const metadata = metadataOf(request.headers)
  const chunks = unpacked(request)
  if (type.startsWith("multipart/form-data")) return form(inside, chunks, boundaryOf(type), given, metadata)
  if (given === undefined || given === "") throw new Fault("invalid", "path is required")
  return [await written(inside, given, chunks, metadata)]
}

async function form(
  inside: Inside,
  chunks: AsyncIterable<Uint8Array>,
  boundary: string,
  given: string | undefined,
  metadata: Metadata,
): Promise<object[]> {
  const done: object[] = []
  for await (const { name, filename, body } of partsOf(chunks, boundary)) {
    const path = given || filename
    if (name !== "file") for await (const _ of body);
    else if (!path) throw new Fault("invalid", "a file of the form has no name")
    else done.push(await written(inside, path, body, metadata))
  }
  if (done.length === 0) throw new Fault("invalid", "there is no file in the form")
  return done
}

type Metadata = Readonly<Record<string, string>>

async function written(
  inside: Inside,
  given: string,
  pieces: AsyncIterable<Uint8Array>,
  metadata: Metadata,
): Promise<object> {
  const { plane, session } = inside
  const path = await inside.path(given)
  // Where it stands, as theirs: whoever watches sees that it is written.
  const asked = { session, path, atomic: false }
  const conversation = await asThey(inside, async (user) => {
    const owner = user === inside.user ? {} : { owner: await ownerOf(inside) }
    return plane.stream("file.write", { ...asked, user, ...owner })
  })
  await filled(conversation, pieces)
  await note(inside, path, metadata)
  const about = Object.keys(metadata).length === 0 ? {} : { metadata }
  return { path, name: posix.basename(path), type: "file", ...about }
}

/** Every upload says all that is noted about a file, also when that is nothing. */
async function note(inside: Inside, path: string, metadata: Metadata): Promise<void> {
  const { plane, session } = inside
  await asThey(inside, (user) => plane.call("file.mark", { session, path, metadata, user })).catch(
    (thrown: unknown) => {
      // Some filesystems keep no notes, and then there are none to take away.
      const isMissed = Object.keys(metadata).length > 0 || !(thrown instanceof Fault) || thrown.code !== "unsupported"
      if (isMissed) throw thrown
    },
  )
}

function metadataOf(headers: Headers): Metadata {
  const prefix = "x-metadata-"
  const found = [...headers].flatMap(([name, value]) =>
    name.startsWith(prefix) ? [[name.slice(prefix.length), value] as const] : [],
  )
  if (found.length > metadataMax) throw new Fault("invalid", `at most ${metadataMax} metadata entries`)
  return Object.fromEntries(found)
}

function unpacked(request: Request): AsyncIterable<Uint8Array> {
  const body = (request.body ?? new Blob([]).stream()) as AsyncIterable<Uint8Array>
  const encoding = request.headers.get("content-encoding") ?? "identity"
  if (encoding === "identity") return body
  if (encoding !== "gzip") throw new Fault("invalid", `the encoding ${encoding} is not known`)
  const gunzip = createGunzip()
  // It starts before anybody reads it: what fails until then must find somebody who listens.
  pipeline(Readable.from(body), gunzip, () => undefined)
  return readable(gunzip)
}

async function* readable(stream: Readable): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of stream) yield piece as Buffer
  } catch (cause) {
    throw new Fault("invalid", "what was sent is not gzip", { cause })
  }
}
