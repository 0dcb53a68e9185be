import { readFile } from "node:fs/promises"
import { dirname } from "node:path"
import { writeFileAtomic } from "@warren/base/atomic-file.ts"
import { errnoOf } from "@warren/base/fault.ts"
import { ensureFolder } from "@warren/base/folder.ts"
import { newSecret } from "./secret.ts"

/** The token of the machine's own user: made at the first start, readable by its owner only. */
export async function openToken(path: string): Promise<string> {
  const kept = await readFile(path, "utf8").catch((failure: unknown) => {
    if (errnoOf(failure) === "ENOENT") return ""
    throw failure
  })
  if (/^wrn_[\w-]{43}$/.test(kept.trim())) return kept.trim()
  const token = newSecret("wrn_")
  ensureFolder(dirname(path), 0o700)
  await writeFileAtomic(path, `${token}\n`)
  return token
}
