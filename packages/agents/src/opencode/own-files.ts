import { existsSync } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { Launch } from "../process-group.ts"
import { instructionsPathOf, modelsPathOf, type OpenCodeSpec } from "./configuration.ts"

/** What OpenCode finds when it starts: all of it outside of the repository. */
export async function writeOwnFiles(spec: OpenCodeSpec, { env }: Launch, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await writeFile(modelsPathOf(folder), "{}")
  if (spec.instructions !== undefined) await writeFile(instructionsPathOf(folder), spec.instructions)
  const { HOME, XDG_CONFIG_HOME = HOME === undefined ? undefined : join(HOME, ".config") } = env
  if (XDG_CONFIG_HOME !== undefined) await claimPlugins(join(XDG_CONFIG_HOME, "opencode"))
}

const lock = { packages: { "": { dependencies: { "@opencode-ai/plugin": "*" } } } }

/**
 * At each first start OpenCode installs sixty megabytes for tools that a person may have written, also when there are none. A folder
 * that looks installed is left alone; a person's own is not touched.
 */
async function claimPlugins(folder: string): Promise<void> {
  if (existsSync(join(folder, "package.json")) || existsSync(join(folder, "node_modules"))) return
  await mkdir(join(folder, "node_modules"), { recursive: true })
  await writeFile(join(folder, "package-lock.json"), JSON.stringify(lock))
}
