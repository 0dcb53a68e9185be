import { readdir, rm } from "node:fs/promises"
import { resolve } from "node:path"
import { pathToFileURL } from "node:url"
import { rolldown } from "rolldown"
import type * as bench from "../bench/main.ts"
import { prepare } from "./prepare.ts"
import { step } from "./progress.ts"

/** Below the repository, where it finds node_modules; of its own, so that two runs do not meet. */
const out = resolve(".cache", `bench-${process.pid}`)

/** Measured as it ships: what tsx makes of a source carries a call for the name of every function. */
async function bundleBench(): Promise<void> {
  const files = await Promise.all(
    ["metrics", "peers"].map(async (folder) => (await readdir(`bench/${folder}`)).map((file) => `${folder}/${file}`)),
  )
  const entries = ["main.ts", ...files.flat()].filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
  const input = Object.fromEntries(entries.map((file) => [file.slice(0, -".ts".length), `bench/${file}`]))
  const build = await rolldown({ input, platform: "node", external: ["libsql"], transform: { target: "node20" } })
  await build.write({ dir: out, format: "esm", entryFileNames: "[name].js", chunkFileNames: "chunks/[name]-[hash].js" })
  await build.close()
}

try {
  await prepare("test")
  await step("Bundling the metrics", bundleBench)
  const { main } = (await import(pathToFileURL(resolve(out, "main.js")).href)) as typeof bench
  process.exitCode = await main(process.argv.slice(2), out)
} finally {
  await rm(out, { recursive: true, force: true })
}
