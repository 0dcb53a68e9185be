import { posix } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { bodyOf, jsonBody, textField } from "../body.ts"

export const fileLimits = {
  jsonBytesMax: 2 * 1024 * 1024,
  uploadBytesMax: 10 * 1024 * 1024,
  uploadFilesMax: 100,
  readBytesMax: 100 * 1024 * 1024,
  /** Where a client says nothing. */
  readBytes: 10 * 1024 * 1024,
} as const

interface Written {
  readonly path: string
  readonly bytes: Buffer
}

/** `{path, text | content_base64}`. */
export async function writeAsked(request: Request): Promise<Written> {
  const fields = await jsonBody(request, fileLimits.jsonBytesMax)
  const [path, text, base64] = ["path", "text", "content_base64"].map((name) => textField(fields, name))
  if (!path) throw new Fault("invalid", "path is required")
  if (text && base64) throw new Fault("invalid", "provide either 'text' or 'content_base64', not both")
  if (text === undefined && base64 === undefined) {
    throw new Fault("invalid", "either 'text' or 'content_base64' must be provided")
  }
  if (base64 && !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) throw new Fault("invalid", "content_base64 is not base64")
  return { path, bytes: base64 ? Buffer.from(base64, "base64") : Buffer.from(text ?? "") }
}

/** A form with `file` or `files`, and the folder they go to as `path`. */
export async function uploadAsked(request: Request): Promise<Written[]> {
  const body = await bodyOf(request, fileLimits.uploadBytesMax)
  const headers = { "content-type": request.headers.get("content-type") ?? "" }
  const form = await new Response(new Uint8Array(body), { headers }).formData().catch((cause: unknown) => {
    throw new Fault("invalid", "invalid multipart form", { cause })
  })
  const folder = form.get("path")
  const files = [...form.getAll("file"), ...form.getAll("files")].filter((one) => typeof one !== "string")
  if (files.length === 0) throw new Fault("invalid", "no file provided: use form field 'file' or 'files'")
  if (files.length > fileLimits.uploadFilesMax) throw new Fault("invalid", "too many files")
  return Promise.all(
    files.map(async (file) => ({
      path: posix.join(typeof folder === "string" ? folder : "", nameOf(file.name)),
      bytes: Buffer.from(await file.arrayBuffer()),
    })),
  )
}

function nameOf(given: string): string {
  const name = posix.basename(given)
  if (name === "" || name === "." || name === "..") throw new Fault("invalid", `invalid filename: ${given}`)
  return name
}

/** `?path=&max_bytes=`. */
export function readAsked(query: (name: string) => string | undefined): { path: string; bytesMax: number } {
  const path = query("path") ?? ""
  if (path === "") throw new Fault("invalid", "path query parameter is required")
  const given = query("max_bytes") ?? "0"
  if (!/^\d{1,9}$/.test(given) || Number(given) > fileLimits.readBytesMax) {
    throw new Fault("invalid", `max_bytes must be a number from 0 to ${fileLimits.readBytesMax}`)
  }
  return { path, bytesMax: Number(given) || fileLimits.readBytes }
}

export function readAnswer(path: string, bytes: Buffer, bytesMax: number): object {
  const content = bytes.subarray(0, bytesMax).toString("base64")
  return { path, content_base64: content, truncated: bytes.length > bytesMax }
}

/** Paths are below /workspace unless they say otherwise. */
export function inSession(path: string): string {
  return posix.resolve("/workspace", path)
}

/** From the top of a workspace, where their clients may also say `/workspace/…`. */
export function inWorkspace(path: string): string {
  const whole = posix.resolve("/workspace", path)
  if (whole === "/workspace") return ""
  if (!whole.startsWith("/workspace/")) throw new Fault("invalid", "path must be under /workspace")
  return whole.slice("/workspace/".length)
}
