import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"

const folders = ["packages", "apps", "tools", "bench", "e2e", "init", "launch", "confine"]
const skipped = new Set(["node_modules", "dist"])

/** Our own TypeScript and the manifests of our packages, by path from the top of the repository. */
export async function sourceFiles(root: string): Promise<Map<string, string>> {
  const paths = (await Promise.all(folders.map((folder) => below(root, folder)))).flat().toSorted()
  return new Map(
    await Promise.all(paths.map(async (path) => [path, await readFile(join(root, path), "utf8")] as const)),
  )
}

async function below(root: string, folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch((failure: NodeJS.ErrnoException) => {
    if (failure.code === "ENOENT") return []
    throw failure
  })
  const found = entries.map((entry): Promise<string[]> => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return skipped.has(entry.name) ? Promise.resolve([]) : below(root, path)
    return Promise.resolve(/\.(ts|tsx|mjs)$|^package\.json$/.test(entry.name) ? [path] : [])
  })
  return (await Promise.all(found)).flat()
}
