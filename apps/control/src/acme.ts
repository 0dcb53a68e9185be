import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { Hono } from "hono"

/** What RFC 8555 lets a token be: nothing that could name another folder. */
const tokenForm = /^[A-Za-z0-9_-]{1,128}$/

/** Answers of an ACME client to its certificate authority, from the folder it puts them in. */
export function acmeRoutes(folder: string): Hono {
  const app = new Hono()
  app.get("/.well-known/acme-challenge/:token", async (c) => {
    const token = c.req.param("token")
    const answer = tokenForm.test(token)
      ? await readFile(join(folder, token), "utf8").catch(() => undefined)
      : undefined
    if (answer === undefined) throw new Fault("not_found", "there is no such challenge")
    return c.text(answer)
  })
  return app
}
