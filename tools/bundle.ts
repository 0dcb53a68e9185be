import { createHash } from "node:crypto"
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { rolldown } from "rolldown"
import { buildConfine } from "../confine/build.ts"
import { buildInit } from "../init/build.ts"
import { buildLaunch, buildLibraries } from "../launch/build.ts"
import { buildPage, pageSources } from "./page.ts"

const out = "dist"
const stampFile = join(out, ".stamp")
/** What a build is made from. A change in any of it makes the next start build again. */
const sources = [
  "packages",
  "apps",
  "images",
  "init",
  "launch",
  "confine",
  "tools/bundle.ts",
  "tools/page.ts",
  "tools/doctor.ts",
  "package-lock.json",
]
/** Loads a compiled binary by a path of its own making, which a bundle would break. */
const external = ["libsql"]
const programs: Readonly<Record<string, string>> = {
  runner: "apps/runner/src/main.ts",
  control: "apps/control/src/main.ts",
  launcher: "apps/launcher/src/main.ts",
  cli: "apps/cli/src/main.ts",
  doctor: "tools/doctor.ts",
  // Copied into the sandboxes of sessions that have an agent.
  supervisor: "apps/supervisor/src/main.ts",
  // The SQL of users runs apart from the runner.
  sql: "packages/user-plane/src/database/child.ts",
  // What an ordinary user's layers are handled by, in a user namespace.
  keeper: "packages/user-plane/src/images/keeper/program.ts",
}

/** Compiles the C programs and bundles each program into one file, unless what is there was made from these very sources. */
export async function bundle(): Promise<void> {
  const digest = await digestOf(sources)
  if ((await readFile(stampFile, "utf8").catch(() => "")) === digest) return
  const draft = `${out}.${process.pid}.tmp`
  await mkdir(draft, { recursive: true })
  try {
    await buildInit(draft)
    await buildLaunch(draft)
    await buildLibraries(draft)
    await buildConfine(draft)
    for (const [name, input] of Object.entries(programs)) await bundleProgram(input, join(draft, `${name}.js`), digest)
    await buildPage(join(out, "web"), join(draft, "web"), await digestOf(pageSources))
    await cp("images", join(draft, "images"), { recursive: true })
    await writeFile(join(draft, ".stamp"), digest)
    // A Warren that runs from the old folder has its files open and goes on.
    await rm(out, { recursive: true, force: true })
    await rename(draft, out)
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

async function bundleProgram(input: string, file: string, digest: string): Promise<void> {
  const build = await rolldown({
    input,
    platform: "node",
    external,
    // Places for tests to make a program die: nothing that ships has them.
    treeshake: { manualPureFunctions: ["failpoint"] },
    transform: { target: "node20", define: { WARREN_BUILD: JSON.stringify(digest.slice(0, 12)) } },
  })
  await build.write({ file, format: "esm", minify: "dce-only", codeSplitting: false })
  await build.close()
}

async function digestOf(paths: readonly string[]): Promise<string> {
  const hash = createHash("sha256")
  for (const path of paths) {
    for (const file of await filesBelow(path)) hash.update(file).update(await readFile(file))
  }
  return hash.digest("hex")
}

async function filesBelow(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true, recursive: true }).catch(
    (failure: NodeJS.ErrnoException) => {
      if (failure.code === "ENOTDIR") return undefined
      if (failure.code === "ENOENT") return []
      throw failure
    },
  )
  if (!entries) return [path]
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return files.filter((file) => !file.includes("node_modules") && !/\.test\.tsx?$/.test(file)).toSorted()
}
