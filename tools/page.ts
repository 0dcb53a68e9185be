import { cp, readdir, readFile, writeFile } from "node:fs/promises"
import { extname, join } from "node:path"
import { promisify } from "node:util"
import { brotliCompress, constants, gzip } from "node:zlib"

/** What the page is made from: most builds are about something else, and take the page that is there. */
export const pageSources = [
  "apps/web",
  "packages/base/src",
  "packages/protocol/src",
  "packages/sdk/src",
  "tools/page.ts",
  "package-lock.json",
]

const compressible = new Set([".html", ".js", ".css", ".svg"])
/** Below this an answer has as many packets either way. */
const compressedFromBytes = 1_024

/** Builds the page into `to`, each file also in the forms it is sent in; or copies `from`, if that was made from the same. */
export async function buildPage(from: string, to: string, digest: string): Promise<void> {
  const stamp = await readFile(join(from, ".stamp"), "utf8").catch(() => "")
  if (stamp === digest) return cp(from, to, { recursive: true })
  // Loaded only here: it takes longer than everything else does when there is nothing to build.
  const { build } = await import("vite")
  await build({ configFile: "apps/web/vite.config.ts", logLevel: "warn", build: { outDir: join(process.cwd(), to) } })
  await compressAll(to)
  await writeFile(join(to, ".stamp"), digest)
}

async function compressAll(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true })
  const files = entries.filter((entry) => entry.isFile() && compressible.has(extname(entry.name)))
  await Promise.all(files.map(({ parentPath, name }) => compress(join(parentPath, name))))
}

async function compress(path: string): Promise<void> {
  const body = await readFile(path)
  if (body.length < compressedFromBytes) return
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9 }
  const [br, gz] = await Promise.all([promisify(brotliCompress)(body, { params }), promisify(gzip)(body, { level: 9 })])
  await Promise.all([writeFile(`${path}.br`, br), writeFile(`${path}.gz`, gz)])
}
