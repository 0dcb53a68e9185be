import { http } from "../../data/api.ts"
import { nameOf } from "./paths.ts"

/** Beyond this an editor is of no use, and a browser slow. */
export const textBytesMax = 2 * 1024 * 1024
const pictureTypes: Readonly<Record<string, string>> = {
  ...{ png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp" },
  ...{ avif: "image/avif", ico: "image/x-icon", bmp: "image/bmp" },
}

export type Content =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "picture"; readonly blob: Blob }
  | { readonly kind: "bytes" }

/** A file, as far as it can be shown. */
export async function readContent(session: string, path: string, size: number, signal: AbortSignal): Promise<Content> {
  if (size > textBytesMax) return { kind: "bytes" }
  const bytes = await (await open(session, path, signal)).arrayBuffer()
  const type = pictureTypes[nameOf(path).split(".").at(-1)?.toLowerCase() ?? ""]
  if (type) return { kind: "picture", blob: new Blob([bytes], { type }) }
  return asText(bytes)
}

function asText(bytes: ArrayBuffer): Content {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
    return text.includes("\0") ? { kind: "bytes" } : { kind: "text", text }
  } catch {
    return { kind: "bytes" }
  }
}

export async function writeContent(session: string, path: string, body: Blob | string): Promise<void> {
  const route = "PUT /v1/sessions/{session}/files/content"
  await (await http.open(route, { session, path }, { body })).arrayBuffer()
}

/** Into the person's own folder of downloads. */
export async function download(session: string, path: string): Promise<void> {
  const url = URL.createObjectURL(await (await open(session, path)).blob())
  const link = document.createElement("a")
  link.href = url
  link.download = nameOf(path)
  link.click()
  URL.revokeObjectURL(url)
}

function open(session: string, path: string, signal?: AbortSignal): Promise<Response> {
  return http.open("GET /v1/sessions/{session}/files/content", { session, path }, { signal })
}
