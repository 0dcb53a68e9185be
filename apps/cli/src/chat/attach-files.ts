import { createReadStream } from "node:fs"
import { readFile, stat } from "node:fs/promises"
import { basename } from "node:path"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Asked } from "@warren/protocol/contract.ts"
import { inlineBytesMax } from "@warren/protocol/user-plane/provision.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"
import type { Runner } from "../runner/runner.ts"
import { upload } from "../runner/upload.ts"
import { mediaTypeOf } from "./media-type.ts"

type Attachment = NonNullable<Asked<typeof userPlane, "agent.prompt">["attachments"]>[number]

/** All small ones together fit into one request. */
const inlineTotalMax = inlineBytesMax

/** Files of this machine for a prompt: small ones go along with it, others are written into the session first. */
export async function attachFiles(runner: Runner, session: string, paths: readonly string[]): Promise<Attachment[]> {
  const attachments: Attachment[] = []
  let inline = 0
  for (const path of paths) {
    const size = await sizeOf(path)
    const about = { type: "file" as const, mime: mediaTypeOf(path), filename: basename(path) }
    if (inline + size <= inlineTotalMax) {
      inline += size
      attachments.push({ ...about, data: (await readFile(path)).toString("base64") })
    } else attachments.push({ ...about, url: await uploaded(runner, session, path) })
  }
  return attachments
}

async function sizeOf(path: string): Promise<number> {
  try {
    const found = await stat(path)
    if (found.isFile()) return found.size
  } catch (cause) {
    throw new Fault("not_found", `cannot read ${path}: ${messageOf(cause)}`, { cause })
  }
  throw new Fault("invalid", `${path} is not a file`)
}

async function uploaded(runner: Runner, session: string, path: string): Promise<string> {
  const to = `/home/user/.warren/attachments/${newId("upl")}/${basename(path)}`
  await using conversation = await runner.open("file.write", { session, path: to })
  await upload(conversation, createReadStream(path), () => undefined)
  return `file://${encodeURI(to)}`
}
