import { Fault } from "@warren/base/fault.ts"
import { z } from "zod"
import { wholeCharacters } from "../excerpt.ts"
import { facts, given, sessionField, text, tool } from "../tool.ts"

const mib = 1024 * 1024
/** What is edited is read and written as a whole. */
const editBytesMax = 4 * mib
const imageBytesMax = 4 * mib
const images: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
}

const path = z
  .string()
  .min(1)
  .max(4095)
  .meta({ description: "Absolute, or below /workspace.", examples: ["/workspace/notes.md"] })
const encoding = z.enum(["utf8", "base64"]).default("utf8")

/** A path as the user plane takes it. */
export function absolute(given: string): string {
  return given.startsWith("/") ? given : `/workspace/${given}`
}

const read = tool({
  name: "read_file",
  title: "Read a file",
  doc: "Read a file of a session, or a part of it. A picture comes as a picture. Of a long file the answer says with which `offset` to go on.",
  kind: "reads",
  in: z.object({
    session: sessionField,
    path,
    offset: z.int().min(0).default(0).meta({ description: "The byte to begin with." }),
    limit: z
      .int()
      .min(1)
      .max(mib)
      .default(64 * 1024)
      .meta({ description: "At most so many bytes." }),
    encoding: encoding.meta({ description: "`base64` for what is not text." }),
  }),
  async run({ session, path: asked, offset, limit, encoding: as }, { asking }) {
    const at = { session, path: absolute(asked) }
    const { size, type } = await asking.call("file.stat", at)
    if (type === "dir") throw new Fault("invalid", `${at.path} is a folder`, { hint: "list_files lists it" })
    const picture = images[/\.(\w+)$/.exec(at.path)?.[1]?.toLowerCase() ?? ""]
    if (picture !== undefined && as === "utf8" && offset === 0 && size > 0 && size <= imageBytesMax) {
      const data = (await asking.read({ ...at, limit: imageBytesMax })).toString("base64")
      return { content: [{ type: "image", data, mimeType: picture }] }
    }
    const bytes = await asking.read({ ...at, offset, limit })
    const isLast = offset + bytes.length >= size
    const shown = as === "base64" || isLast ? bytes : bytes.subarray(0, wholeCharacters(bytes))
    const next = offset + shown.length
    const content = shown.toString(as)
    const pointer = { ...given({ session, path: asked }), offset: next }
    const rest = isLast ? [] : [`[${size - next} of ${size} bytes follow: read_file ${JSON.stringify(pointer)}]`]
    return {
      ...text(content, ...rest),
      structuredContent: { content, encoding: as, size, offset, ...(isLast ? {} : { nextOffset: next }) },
    }
  },
})

const write = tool({
  name: "write_file",
  title: "Write a file",
  doc: "Write a file of a session. Folders above it are made; nothing of it is seen until all of it is there.",
  kind: "changes",
  in: z.object({
    session: sessionField,
    path,
    content: z.string().max(3 * mib),
    encoding,
    append: z.boolean().default(false).meta({ description: "Add to its end instead of replacing it." }),
    mode: z.int().min(0).max(0o7777).optional().meta({ description: "Its permissions, 493 for 0755." }),
  }),
  async run({ session, path: asked, content, encoding: as, ...wishes }, { asking }) {
    const bytes = Buffer.from(content, as)
    await asking.write({ session, path: absolute(asked), ...given(wishes) }, bytes)
    return facts({ path: absolute(asked), bytes: bytes.length })
  },
})

const edit = tool({
  name: "edit_file",
  title: "Edit a file",
  doc: "Replace pieces of a text file. Each `old` has to be there exactly once unless `all` is said; if one is not, nothing is changed.",
  kind: "changes",
  in: z.object({
    session: sessionField,
    path,
    edits: z
      .array(z.object({ old: z.string().min(1).max(mib), new: z.string().max(mib), all: z.boolean().default(false) }))
      .min(1)
      .max(100),
  }),
  async run({ session, path: asked, edits }, { asking }) {
    const at = { session, path: absolute(asked) }
    const { size, mode } = await asking.call("file.stat", at)
    if (size > editBytesMax) throw new Fault("limit", `${at.path} is over ${editBytesMax} bytes`)
    let content = (await asking.read({ ...at, limit: editBytesMax })).toString()
    let count = 0
    for (const one of edits) {
      const pieces = content.split(one.old)
      if (pieces.length === 1) throw new Fault("not_found", `"${one.old.slice(0, 80)}" is not in ${at.path}`)
      if (pieces.length > 2 && !one.all) {
        throw new Fault("conflict", `"${one.old.slice(0, 80)}" is ${pieces.length - 1} times in ${at.path}`, {
          hint: "give more of what is around it, or say `all`",
        })
      }
      content = pieces.join(one.new)
      count += pieces.length - 1
    }
    await asking.write({ ...at, mode: mode & 0o7777 }, Buffer.from(content))
    return facts({ path: at.path, replaced: count })
  },
})

const list = tool({
  name: "list_files",
  title: "List files",
  doc: "What is in a folder of a session, and below it down to `depth`.",
  kind: "reads",
  in: z.object({
    session: sessionField,
    path: path.default("/workspace"),
    depth: z.int().min(1).max(64).default(1),
    limit: z.int().min(1).max(5_000).default(200),
  }),
  async run({ session, path: asked, ...wishes }, { asking }) {
    const { entries, truncated } = await asking.call("file.list", { session, path: absolute(asked), ...wishes })
    const shown = entries.map(({ path: at, type, size, mtimeMs, target }) => ({
      ...{ path: at, type, size, changedAt: new Date(mtimeMs).toISOString() },
      ...given({ target }),
    }))
    return facts({ entries: shown, truncated, ...(truncated ? { hint: "a higher limit, or a folder below" } : {}) })
  },
})

const remove = tool({
  name: "remove_file",
  title: "Remove a file",
  doc: "Remove a file, or with `recursive` a folder and everything in it.",
  kind: "changes",
  in: z.object({ session: sessionField, path, recursive: z.boolean().default(false) }),
  async run({ session, path: asked, recursive }, { asking }) {
    await asking.call("file.remove", { session, path: absolute(asked), recursive })
    return facts({ removed: absolute(asked) })
  },
})

export const fileTools = [read, write, edit, list, remove]
