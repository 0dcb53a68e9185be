import { readdir } from "node:fs/promises"
import path from "node:path"
import { compile } from "../launch/build.ts"

/** Builds `<outDir>/warren-confine` and returns its path. */
export async function buildConfine(outDir: string): Promise<string> {
  const folder = path.join(import.meta.dirname, "src")
  const sources = (await readdir(folder)).filter((name) => name.endsWith(".c")).map((name) => path.join(folder, name))
  return await compile(sources, path.join(path.resolve(outDir), "warren-confine"))
}
