import { Fault } from "@warren/base/fault.ts"
import { etcAt, homeAt, initAt, sudoAt } from "@warren/drivers/oci/spec/places.ts"
import type { ImageView } from "./layer/merged.ts"
import { parentsOf } from "./layer/parents.ts"
import { shown } from "./tar/entry.ts"
import { writeTar, type WritableEntry } from "./tar/writer.ts"

interface Folder {
  readonly path: string
  readonly mode: number
  readonly owner: number
}

const user = 1000
const initUser = 65_533

/**
 * What a sandbox mounts over or binds into, and the way there. The runtime and the launcher come here with more rights than a
 * sandbox has, so in no image may one of these lead somewhere else (CVE-2026-47766 and its kin).
 */
const folders: readonly Folder[] = [
  ...["dev", "proc", "sys", "etc", "run", "run/warren", "usr", "usr/local", "usr/local/bin", "home"].map((path) => ({
    path,
    mode: 0o755,
    owner: 0,
  })),
  { path: "tmp", mode: 0o1777, owner: 0 },
  { path: "workspace", mode: 0o755, owner: user },
  { path: homeAt.slice(1), mode: 0o755, owner: user },
]

/** Empty files to bind over. */
const targets = [initAt, sudoAt, ...Object.values(etcAt)].map((path) => path.slice(1))
const accountsBytesMax = 2 ** 20

/**
 * The archive of a small layer on top of an image, which makes it a sandbox's: places to mount over, and a user to work as.
 * Undefined when the image has it all. An image whose own places lead elsewhere is refused.
 */
export async function warrenLayer(image: ImageView): Promise<Buffer | undefined> {
  const entries = new Map<string, WritableEntry & { readonly content?: Buffer }>()
  for (const { path, mode, owner } of folders) {
    const seen = await image.stat(path.split("/"))
    if (seen?.kind === "link") {
      const target = shown(await image.link(path.split("/")))
      throw new Fault("invalid", `/${path} of the image is a link to ${target}; it must be a folder`, {
        subject: `entry:/${path}`,
      })
    }
    if (seen && seen.kind !== "folder") {
      throw new Fault("invalid", `/${path} of the image is not a folder`, { subject: `entry:/${path}` })
    }
    if (!seen) entries.set(path, { name: `${path}/`, kind: "folder", mode, uid: owner, gid: owner })
    // Somewhere to work is the user's own, whoever made it.
    else if (owner === user && (seen.uid !== user || (seen.mode & 0o700) !== 0o700)) {
      const own = (seen.mode & 0o7777) | 0o700
      entries.set(path, { name: `${path}/`, kind: "folder", mode: own, uid: user, gid: user })
    }
  }
  for (const path of targets) {
    if ((await image.stat(path.split("/")))?.kind !== "file") entries.set(path, file(path, ""))
  }
  for await (const [path, text] of accounts(image)) entries.set(path, file(path, text))
  if (entries.size === 0) return undefined
  return writeTar([...(await parentsOf(image, [...entries.keys()])), ...entries.values()].toSorted(byName))
}

function file(name: string, text: string): WritableEntry & { readonly content: Buffer } {
  return { name, kind: "file", mode: 0o644, content: Buffer.from(text, "latin1") }
}

/** `passwd` and `group` with the sandbox's user in them, where they lack it. */
async function* accounts(image: ImageView): AsyncGenerator<[string, string], void, void> {
  const hasBash = (await image.stat(["bin", "bash"])) ?? (await image.stat(["usr", "bin", "bash"]))
  const shell = hasBash ? "/bin/bash" : "/bin/sh"
  const passwd = (await image.text(["etc", "passwd"], accountsBytesMax)) ?? "root:x:0:0:root:/root:/bin/sh\n"
  const group = (await image.text(["etc", "group"], accountsBytesMax)) ?? "root:x:0:\n"
  const people = added(passwd, [
    { id: user, line: (name) => `${name}:x:${user}:${user}::${homeAt}:${shell}`, names: ["user", "sandbox"] },
    {
      id: initUser,
      line: (name) => `${name}:x:${initUser}:${initUser}::/:/bin/false`,
      names: ["warren", "warren-init"],
    },
  ])
  const groups = added(group, [
    { id: user, line: (name) => `${name}:x:${user}:`, names: ["user", "sandbox"] },
    { id: initUser, line: (name) => `${name}:x:${initUser}:`, names: ["warren", "warren-init"] },
  ])
  if (people !== undefined) yield ["etc/passwd", people]
  if (groups !== undefined) yield ["etc/group", groups]
}

interface Account {
  readonly id: number
  /** The first that is free. */
  readonly names: readonly string[]
  line(name: string): string
}

function added(text: string, accounts: readonly Account[]): string | undefined {
  const rows = text.split("\n").map((line) => line.split(":"))
  const missing = accounts.filter(({ id }) => !rows.some((row) => row[2] === String(id)))
  if (missing.length === 0) return undefined
  const lines = missing.flatMap(({ names, line }) => {
    const free = names.find((name) => !rows.some((row) => row[0] === name))
    return free === undefined ? [] : [line(free)]
  })
  return [text.replace(/\n*$/, ""), ...lines, ""].filter((part, index) => index > 0 || part !== "").join("\n")
}

function byName(a: WritableEntry, b: WritableEntry): number {
  return a.name < b.name ? -1 : 1
}
