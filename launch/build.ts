import { execFile } from "node:child_process"
import { mkdir, readdir, rename, rm } from "node:fs/promises"
import path from "node:path"
import { promisify } from "node:util"

const run = promisify(execFile)

/** Static, so that it starts in 0.1 ms and needs nothing; musl where there is one (glibc's start-up is twice as long). */
const compilers = [
  { command: "musl-gcc", flags: ["-static"] },
  { command: "cc", flags: ["-static"] },
] as const

const flags = [
  "-std=c11",
  "-O2",
  "-Wall",
  "-Wextra",
  "-Werror",
  "-Wshadow",
  "-fstack-protector-strong",
  "-D_FORTIFY_SOURCE=2",
  "-s",
]

/** Compiles one static program; the file appears whole or not at all. */
export async function compile(sources: readonly string[], target: string): Promise<string> {
  await mkdir(path.dirname(target), { recursive: true })
  const temporary = `${target}.${process.pid}.tmp`
  try {
    for (const [index, { command, flags: own }] of compilers.entries()) {
      try {
        await run(command, [...flags, ...own, "-o", temporary, ...sources])
        await rename(temporary, target)
        return target
      } catch (error) {
        const missing = error instanceof Error && "code" in error && error.code === "ENOENT"
        if (!missing || index === compilers.length - 1) throw error
      }
    }
    throw new Error("no C compiler")
  } finally {
    await rm(temporary, { force: true })
  }
}

/** Builds `<outDir>/warren-launch` and returns its path. */
export async function buildLaunch(outDir: string): Promise<string> {
  const folder = path.join(import.meta.dirname, "src")
  const sources = (await readdir(folder)).filter((name) => name.endsWith(".c")).map((name) => path.join(folder, name))
  return await compile(sources, path.join(path.resolve(outDir), "warren-launch"))
}

/**
 * Builds the do-nothing libsystemd that spares crun 0.7 ms of linking, and tries it with this machine's crun.
 * Returns the directory for a start's `libraries`, or undefined where it does not fit (static crun, another libsystemd).
 */
export async function buildLibraries(outDir: string, crun = "/usr/bin/crun"): Promise<string | undefined> {
  const stub = path.join(import.meta.dirname, "stub")
  const folder = path.join(path.resolve(outDir), "crun-lib")
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const target = path.join(folder, "libsystemd.so.0")
  try {
    const link = ["-Wl,-soname,libsystemd.so.0", `-Wl,--version-script=${path.join(stub, "systemd.map")}`]
    const temporary = `${target}.${process.pid}.tmp`
    await run("cc", [
      "-shared",
      "-nostdlib",
      "-fPIC",
      "-O2",
      "-s",
      ...link,
      "-o",
      temporary,
      path.join(stub, "systemd.c"),
    ])
    await rename(temporary, target)
    await run(crun, ["--version"], { env: { LD_LIBRARY_PATH: folder, LD_BIND_NOW: "1" } })
    return folder
  } catch {
    await rm(folder, { recursive: true, force: true })
    return undefined
  }
}
