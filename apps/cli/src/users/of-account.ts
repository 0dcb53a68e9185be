import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs"
import { errnoOf, Fault } from "@warren/base/fault.ts"

/**
 * Reads a small file of another account's, as root. A link that account has put in its place would let it have root read
 * anything for it.
 */
export function readOwned(path: string, uid: number): string {
  const file = openFile(path)
  try {
    const about = fstatSync(file)
    if (about.isFile() && about.uid === uid && about.size <= bytesMax) return readFileSync(file, "utf8")
  } finally {
    closeSync(file)
  }
  throw new Fault("forbidden", `${path} is not what its account has written`)
}

const bytesMax = 4096

function openFile(path: string): number {
  try {
    // Without waiting: what is in its place may be a pipe that nobody writes to.
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (cause) {
    if (errnoOf(cause) === "ELOOP") throw new Fault("forbidden", `${path} is a link`, { cause })
    throw new Fault("unavailable", `${path} cannot be read (${errnoOf(cause)})`, {
      cause,
      hint: "sudo warren launcher",
    })
  }
}

const listening = "0A"

/** The accounts whose processes listen on a TCP port of this machine. */
export function listenersOf(port: number): number[] {
  const tail = `:${port.toString(16).toUpperCase().padStart(4, "0")}`
  const lines = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) => readFileSync(file, "utf8").split("\n"))
  const found = lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = "", , state]) => local.endsWith(tail) && state === listening)
  return [...new Set(found.map((fields) => Number(fields[7])))]
}
