import { readFileSync } from "node:fs"
import { block, padding, writeTar, type WritableEntry } from "../tar/writer.ts"
import { writePax } from "../tar/pax.ts"

export type Content = WritableEntry & { readonly content?: Buffer }

export function file(name: string, content = "", more: Partial<WritableEntry> = {}): Content {
  return { name, kind: "file", mode: 0o644, ...more, content: Buffer.from(content) }
}

export function folder(name: string, more: Partial<WritableEntry> = {}): Content {
  return { name, kind: "folder", mode: 0o755, ...more }
}

export function symlink(name: string, target: string): Content {
  return { name, kind: "symlink", mode: 0o777, target }
}

export function hardlink(name: string, target: string): Content {
  return { name, kind: "hardlink", target }
}

interface RawEntry {
  readonly name: string
  readonly type: string
  readonly target?: string
  readonly size?: number
  readonly mode?: number
  readonly content?: Buffer
}

/** An entry of which every field says what the test wants. */
export function raw({
  name,
  type,
  target = "",
  mode = 0o644,
  content = Buffer.alloc(0),
  size = content.length,
}: RawEntry): Buffer {
  const header = block({ name, type, mode, uid: 0, gid: 0, size, time: 0, target })
  return Buffer.concat([header, content, padding(content.length)])
}

export function pax(records: Readonly<Record<string, string | Buffer>>, type = "x"): Buffer {
  const body = Buffer.concat(Object.entries(records).map(([key, value]) => writePax(key, Buffer.from(value))))
  return raw({ name: "pax", type, content: body })
}

/** Archives, one after the other, with one end. */
export function joined(...parts: readonly (Buffer | Content)[]): Buffer {
  const bytes = parts.map((part) => (Buffer.isBuffer(part) ? part : writeTar([part]).subarray(0, -1024)))
  return Buffer.concat([...bytes, Buffer.alloc(1024)])
}

const applets = [
  "sh",
  "cat",
  "ls",
  "echo",
  "id",
  "stat",
  "touch",
  "rm",
  "mkdir",
  "test",
  "true",
  "wc",
  "sleep",
  "find",
  "cp",
]

/** The smallest tree in which something can be run. */
export function busyboxTree(...more: readonly Content[]): Content[] {
  return [
    folder("bin/"),
    { ...file("bin/busybox", "", { mode: 0o755 }), content: readFileSync("/usr/bin/busybox") },
    ...applets.map((name) => symlink(`bin/${name}`, "busybox")),
    folder("etc/"),
    file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
    folder("tmp/", { mode: 0o1777 }),
    ...more,
  ]
}

/** Small files of somebody else's, one after the other, for as long as anybody reads. */
export async function* endlessTar(): AsyncGenerator<Buffer, void, void> {
  for (let count = 0; ; count++) {
    const entry = file(`folder-${count % 7}/file-${count}`, "x".repeat(1000), { uid: 1000, gid: 1000, mode: 0o600 })
    yield await Promise.resolve(writeTar([entry]).subarray(0, -1024))
  }
}
