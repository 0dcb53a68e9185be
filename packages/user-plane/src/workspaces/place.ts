import { Fault } from "@warren/base/fault.ts"

/** Names from the top of a workspace down. The top itself is no names at all. */
export type Place = readonly string[]

const nameBytesMax = 255
const depthMax = 128

/** Where a path leads, when it leads somewhere inside. */
export function placeOf(path: string): Place {
  const refuse = (why: string): never => {
    throw new Fault("invalid", `"${path.slice(0, nameBytesMax)}" ${why}`, {
      hint: "give a path from the top of the workspace",
    })
  }
  if (path.includes("\0")) refuse("holds a NUL")
  if (path.startsWith("/")) refuse("is absolute")
  const place = path.split("/").filter((name) => name !== "" && name !== ".")
  if (place.includes("..")) refuse("leads upwards")
  if (place.length > depthMax) refuse(`is deeper than ${depthMax} folders`)
  if (place.some((name) => Buffer.byteLength(name) > nameBytesMax))
    refuse(`has a name longer than ${nameBytesMax} bytes`)
  return place
}

/** The same, for what cannot be done with the top itself. */
export function placeBelow(path: string): { folder: Place; name: string; place: Place } {
  const place = placeOf(path)
  const name = place.at(-1)
  if (name === undefined) throw new Fault("invalid", "that is the workspace itself, not something in it")
  return { folder: place.slice(0, -1), name, place }
}
