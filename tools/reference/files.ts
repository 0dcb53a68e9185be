import { mkdir, readFile, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { version } from "@warren/base/build-info.ts"
import { openApi } from "@warren/protocol/http/openapi.ts"
import { publicCalls } from "@warren/protocol/control-plane.ts"
import { describeWires } from "@warren/protocol/wires.ts"
import { sourceFiles } from "../source-files.ts"
import { apiPage } from "./api.ts"
import { cliPage } from "./cli.ts"
import { failpointsPage } from "./failpoints.ts"
import { faultsPage } from "./faults.ts"
import { framesPage } from "./frames.ts"
import { settingsPage } from "./settings.ts"

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** Every file that is made from the code, by its path. The same on every machine and at every time. */
export async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ["packages/protocol/wire.lock.json", json(describeWires())],
    ["docs/reference/openapi.json", json(openApi(publicCalls, { version }))],
    ["docs/reference/api.md", apiPage()],
    ["docs/reference/cli.md", cliPage()],
    ["docs/reference/failpoints.md", failpointsPage(await sourceFiles("."))],
    ["docs/reference/faults.md", faultsPage()],
    ["docs/reference/frames.md", framesPage()],
    ["docs/reference/settings.md", await settingsPage()],
  ])
}

/** Those that are missing below `folder` or not what they should be. */
export async function staleFiles(folder: string): Promise<string[]> {
  const files = [...(await generatedFiles())]
  const kept = await Promise.all(files.map(([path]) => readFile(join(folder, path), "utf8").catch(() => undefined)))
  return files.filter(([, text], index) => text !== kept[index]).map(([path]) => path)
}

export async function writeFiles(paths: readonly string[]): Promise<void> {
  const files = await generatedFiles()
  for (const path of paths) {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, files.get(path) ?? "")
  }
}
