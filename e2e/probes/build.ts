import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { compile } from "../../launch/build.ts"

/** Builds `<outDir>/warren-probe` and returns its path: static, so that it runs wherever it is brought to. */
export async function buildProbe(outDir: string): Promise<string> {
  const folder = join(import.meta.dirname, "src")
  const sources = (await readdir(folder)).filter((name) => name.endsWith(".c")).map((name) => join(folder, name))
  return await compile(sources, join(outDir, "warren-probe"))
}
