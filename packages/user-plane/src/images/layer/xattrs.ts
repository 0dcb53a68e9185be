import { execFile, spawn } from "node:child_process"
import { closeSync, constants, openSync } from "node:fs"
import { promisify } from "node:util"
import { Fault } from "@warren/base/fault.ts"
import { refused } from "../tar/entry.ts"
import type { FolderWalk } from "./folder-walk.ts"
import type { Place } from "./place.ts"

const run = promisify(execFile)

/** Attributes for one file or folder. */
export interface Attributes {
  readonly entry: string
  readonly place: Place
  readonly values: ReadonlyMap<string, Buffer>
}

/** Files open at once for one run of `setfattr`. */
const batchMax = 200
const openFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
/** The first descriptor after standard input, output and error. */
const firstDescriptor = 3

/**
 * Sets attributes, which Node cannot: `setfattr` gets each file as an open descriptor, so that no name inside the layer is ever
 * resolved by another program.
 */
export async function setXattrs(walk: FolderWalk, all: readonly Attributes[]): Promise<void> {
  for (let at = 0; at < all.length; at += batchMax) await setBatch(walk, all.slice(at, at + batchMax))
}

async function setBatch(walk: FolderWalk, batch: readonly Attributes[]): Promise<void> {
  const descriptors: number[] = []
  const lines: string[] = []
  try {
    for (const { place, values } of batch) {
      const path = walk.find(place)
      if (!path) continue
      descriptors.push(openSync(path, openFlags))
      lines.push(`# file: /proc/self/fd/${firstDescriptor + descriptors.length - 1}`)
      for (const [name, value] of values) {
        // No bytes at all have a spelling of their own.
        lines.push(value.length === 0 ? `${name}=""` : `${name}=0s${value.toString("base64")}`)
      }
      lines.push("")
    }
    await restore(lines.join("\n"), descriptors, batch)
  } finally {
    for (const descriptor of descriptors) closeSync(descriptor)
  }
}

function restore(text: string, descriptors: readonly number[], batch: readonly Attributes[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn("setfattr", ["--restore=-"], { stdio: ["pipe", "pipe", "pipe", ...descriptors], env: safeEnv })
    let complaint = ""
    child.stderr?.on("data", (chunk: Buffer) => (complaint = (complaint + chunk.toString()).slice(0, 1000)))
    child.once("error", (cause) =>
      reject(new Fault("unsupported", "could not run setfattr", { cause, hint: "apt-get install attr" })),
    )
    child.once("close", (code) => {
      if (code === 0) return resolve()
      const index = Number(/fd\/(\d+)/.exec(complaint)?.[1] ?? firstDescriptor) - firstDescriptor
      reject(refused(batch[index]?.entry ?? "", `has attributes that the disk does not take: ${complaint.trim()}`))
    })
    child.stdin?.on("error", () => undefined)
    child.stdin?.end(text)
  })
}

const safeEnv = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C" }
const listBytesMax = 256 * 2 ** 20

/** Every `user.` attribute below `folder`, by path from it (latin1). Links are not followed. */
export async function readXattrs(folder: string): Promise<Map<string, Map<string, Buffer>>> {
  const found = new Map<string, Map<string, Buffer>>()
  const args = ["--recursive", "--physical", "--no-dereference", "--dump", "--encoding=base64", "--match=^user\\.", "."]
  const options = { cwd: folder, encoding: "latin1" as const, maxBuffer: listBytesMax, env: safeEnv }
  const { stdout } = await run("getfattr", args, options).catch((cause: unknown) => {
    throw new Fault("unsupported", "could not read attributes with getfattr", { cause, hint: "apt-get install attr" })
  })
  let current = new Map<string, Buffer>()
  for (const line of stdout.split("\n")) {
    const file = /^# file: (.*)$/.exec(line)?.[1]
    const [, name, value] = /^([^=]+)(?:=(?:0s(.*)|""))?$/.exec(line) ?? []
    if (file !== undefined) found.set(unescape(file), (current = new Map<string, Buffer>()))
    else if (name !== undefined) current.set(unescape(name), Buffer.from(value ?? "", "base64"))
  }
  return found
}

/** `getfattr` writes what it finds strange as a backslash and three octal digits. */
function unescape(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}
