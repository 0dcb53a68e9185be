import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import { mkdir, readFile } from "node:fs/promises"
import { dirname } from "node:path"
import { writeFileAtomic } from "@warren/base/atomic-file.ts"
import { errnoOf, Fault } from "@warren/base/fault.ts"

/** The token of the machine's own user: made at the first start, readable by its owner only. */
export async function openToken(path: string): Promise<string> {
  const kept = await readFile(path, "utf8").catch((failure: unknown) => {
    if (errnoOf(failure) === "ENOENT") return ""
    throw failure
  })
  if (/^wrn_[\w-]{43}$/.test(kept.trim())) return kept.trim()
  const token = `wrn_${randomBytes(32).toString("base64url")}`
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await writeFileAtomic(path, `${token}\n`)
  return token
}

/** Throws unless the request carries the token. Takes the same time whatever was sent. */
export function checkToken(request: Request, token: string): void {
  const [scheme = "", given = ""] = (request.headers.get("authorization") ?? "").split(" ", 2)
  const isRight = timingSafeEqual(digest(given), digest(token))
  if (scheme.toLowerCase() === "bearer" && isRight) return
  throw new Fault("unauthenticated", "a valid token is missing", { hint: "send Authorization: Bearer <token>" })
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest()
}
