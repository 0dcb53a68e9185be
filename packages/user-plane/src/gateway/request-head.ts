import { isIP } from "node:net"
import { framing, valuesOf } from "../egress/headers.ts"
import type { Address } from "./address.ts"
import { withoutCredentials } from "./credentials.ts"

/** Said by us alone. An underscore is a dash to many a program. */
const ours = /^(?:host|expect|via|forwarded|x-forwarded-.*|x-real-ip|x-warren-.*)$/

/** The head of the request as the program inside gets it. It sees the host name that the browser sees, so that what it builds from it fits. */
export function requestHead(raw: readonly string[], address: Address): string[] {
  const { authority, prefix } = address
  const host = `${authority.host}${authority.port}`
  const kept = withoutCredentials(raw)
  const head = ["Host", host]
  for (let i = 0; i + 1 < kept.length; i += 2) {
    const [name = "", value = ""] = [kept[i], kept[i + 1]]
    if (!ours.test(name.toLowerCase().replaceAll("_", "-"))) head.push(name, value)
  }
  head.push("X-Forwarded-Host", host, "X-Forwarded-Proto", authority.scheme)
  const [client = ""] = valuesOf(raw, "x-warren-client")
  if (isIP(client) > 0) head.push("X-Forwarded-For", client)
  if (prefix !== "") head.push("X-Forwarded-Prefix", prefix)
  return head
}

/** How the body's end is told inside; a change without a body says so, or Node would send an empty one in pieces. */
export function bodyHead(raw: readonly string[], method: string): string[] {
  if (valuesOf(raw, "content-length").length > 0) return []
  const chunked = framing(raw)
  return chunked.length > 0 || !["POST", "PUT", "PATCH"].includes(method) ? chunked : ["Content-Length", "0"]
}

export function hasBody(raw: readonly string[]): boolean {
  const [length = "0"] = valuesOf(raw, "content-length")
  return length !== "0" || valuesOf(raw, "transfer-encoding").length > 0
}
