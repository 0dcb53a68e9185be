import { nameBytesMax, type ArchiveLimits } from "../limits.ts"
import { refused, tooMuch } from "../tar/entry.ts"

/** Names from the top of a layer down, none of them `.`, `..` or empty. The top itself is no names at all. */
export type Place = readonly string[]

const whiteoutPrefix = ".wh."
const opaqueName = ".wh..wh..opq"

/** Where an entry's name leads, when it leads somewhere inside. */
export function placeOf(entry: string, path: string, limits: ArchiveLimits): Place {
  const what = path === entry ? "" : "links to a name that "
  if (path === "") throw refused(entry, `${what}is empty`)
  if (path.includes("\0")) throw refused(entry, `${what}holds a NUL`)
  if (path.startsWith("/")) throw refused(entry, `${what}is absolute`)
  if (path.length > limits.pathBytesMax) throw tooMuch(entry, `${what}is longer than ${limits.pathBytesMax} bytes`)
  const place = path.split("/").filter((part) => part !== "" && part !== ".")
  if (place.includes("..")) throw refused(entry, `${what}leads out of its layer`)
  if (place.length > limits.depthMax) throw tooMuch(entry, `${what}is deeper than ${limits.depthMax} folders`)
  const long = place.find((part) => part.length > nameBytesMax)
  if (long !== undefined) throw tooMuch(entry, `${what}has a part longer than ${nameBytesMax} bytes`)
  return place
}

export type Marker = { readonly kind: "opaque"; readonly at: Place } | { readonly kind: "whiteout"; readonly at: Place }

/** What an entry's name takes away from the layers below; undefined for an ordinary name. */
export function markerOf(entry: string, place: Place): Marker | undefined {
  const folder = place.slice(0, -1)
  if (folder.some((part) => part.startsWith(whiteoutPrefix))) throw refused(entry, "is below something that takes away")
  const last = place.at(-1) ?? ""
  if (!last.startsWith(whiteoutPrefix)) return undefined
  if (last === opaqueName) return { kind: "opaque", at: folder }
  const name = last.slice(whiteoutPrefix.length)
  if (name === "" || name === "." || name === ".." || name.startsWith(whiteoutPrefix)) {
    throw refused(entry, "takes away a name that nothing can have")
  }
  return { kind: "whiteout", at: [...folder, name] }
}

export function whiteoutName({ kind, at }: Marker): string {
  if (kind === "opaque") return [...at, opaqueName].join("/")
  return [...at.slice(0, -1), `${whiteoutPrefix}${at.at(-1) ?? ""}`].join("/")
}
