import { readFile } from "node:fs/promises"
import { Forwarded } from "@warren/protocol/forwarded.ts"
import type { z } from "zod"

/** What whoever started the runner gave it for agents and for sandboxes. */
export async function readForwarded(path: string): Promise<z.output<typeof Forwarded>> {
  if (path === "") return { agent: {}, shell: {} }
  return Forwarded.parse(JSON.parse(await readFile(path, "utf8")))
}
