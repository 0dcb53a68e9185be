import { readdir, readFile, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { ensureFolder } from "@warren/base/folder.ts"

/** Where packages come from, and how apt behaves. Keys and preferences are plain copies; `auth.conf` stays outside. */
const places = [
  { folder: "sources.list.d", pattern: /\.(list|sources)$/ },
  { folder: "apt.conf.d", pattern: /^[\w.-]+$/ },
  { folder: ".", pattern: /^(sources\.list|apt\.conf)$/ },
]

/** Somebody's password in a URL; a way out that is not the sandbox's; a program that the host wants to be run. */
const unwanted = /:\/\/[^/\s"]*@|proxy|password|invoke|hook/i

/** Copies the host's settings of apt that hold no secret and mean the same inside. */
export async function copyAptSettings(to: string, from = "/etc/apt"): Promise<void> {
  for (const { folder, pattern } of places) {
    const names = await readdir(join(from, folder)).catch(() => [])
    for (const name of names.filter((one) => pattern.test(one))) {
      const text = await readFile(join(from, folder, name), "utf8").catch(() => "")
      if (text === "" || unwanted.test(text)) continue
      ensureFolder(dirname(join(to, folder, name)))
      await writeFile(join(to, folder, name), text, { mode: 0o644 })
    }
  }
}
