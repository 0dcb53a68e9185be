import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { access, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"

const run = promisify(execFile)
const folder = import.meta.dirname
const sources = join(folder, "src")

/** What can be made of the sources: the program itself, the program with sanitizers, the unit tests, two fuzzers. */
export type Variant = "release" | "sanitize" | "unit" | "fuzz-frame" | "fuzz-json"

const strict = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
const sanitizers = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
const fuzzers = ["-O1", "-g", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]

/** The parts that are pure enough to be tested without a process around them. */
const pure = ["frame.c", "json.c", "text.c", "ring.c", "user.c"]

async function available(program: string): Promise<boolean> {
  const folders = (process.env["PATH"] ?? "/usr/bin:/bin").split(":")
  const found = await Promise.allSettled(folders.map((path) => access(join(path, program))))
  return found.some((result) => result.status === "fulfilled")
}

async function cFiles(path: string): Promise<string[]> {
  const names = await readdir(path)
  return names
    .filter((name) => name.endsWith(".c") || name.endsWith(".h"))
    .sort()
    .map((name) => join(path, name))
}

/** Changes when a source, this file, or the compiler that is used changes. */
async function identity(variant: Variant, compiler: string): Promise<string> {
  const hash = createHash("sha256").update(`${variant} ${compiler} ${process.arch}`)
  const files = [
    ...(await cFiles(sources)),
    ...(await cFiles(join(folder, "test"))),
    ...(await cFiles(join(folder, "fuzz"))),
  ]
  for (const file of variant === "release" ? await cFiles(sources) : files)
    hash.update(file.slice(folder.length)).update(await readFile(file))
  hash.update(await readFile(import.meta.filename))
  return hash.digest("hex").slice(0, 16)
}

async function commandOf(variant: Variant): Promise<{ compiler: string; args: readonly string[] }> {
  const all = (await cFiles(sources)).filter((file) => file.endsWith(".c"))
  const some = pure.map((name) => join(sources, name))
  switch (variant) {
    case "release": {
      const compiler = (await available("musl-gcc")) ? "musl-gcc" : "cc"
      return { compiler, args: ["-static", "-O2", "-g0", "-s", ...all] }
    }
    case "sanitize":
      return { compiler: "gcc", args: [...sanitizers, ...all] }
    case "unit":
      return { compiler: "gcc", args: [...sanitizers, "-I", sources, ...some, join(folder, "test", "unit.c")] }
    case "fuzz-frame":
    case "fuzz-json":
      return {
        compiler: "clang",
        args: [...fuzzers, "-I", sources, ...some, join(folder, "fuzz", `${variant.slice(5)}.c`)],
      }
  }
}

// Beside the target and renamed at the end, so that two builds at once cannot see half of each other.
async function compile(compiler: string, args: readonly string[], id: string, target: string): Promise<void> {
  const temporary = `${target}.${process.pid}`
  try {
    await run(compiler, [...strict, `-DBUILD_ID="${id}"`, "-o", temporary, ...args])
    await rename(temporary, target)
  } finally {
    await rm(temporary, { force: true })
  }
}

const exists = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  )

/** Compiles init into `<outDir>/warren-init` and returns that path. Does nothing when that is up to date. */
export async function buildInit(outDir: string): Promise<string> {
  const target = join(outDir, "warren-init")
  const stamp = `${target}.id`
  const { compiler, args } = await commandOf("release")
  const id = await identity("release", compiler)
  const current = await readFile(stamp, "utf8").catch(() => "")
  if (current === id && (await exists(target))) return target
  await mkdir(outDir, { recursive: true })
  await compile(compiler, args, id, target)
  await writeFile(stamp, id)
  return target
}

/** The same for any variant, under a name with its build id: for tests. */
export async function buildVariant(variant: Variant, outDir: string): Promise<string> {
  const { compiler, args } = await commandOf(variant)
  const id = await identity(variant, compiler)
  const target = join(outDir, `${variant}-${id}`)
  if (await exists(target)) return target
  await mkdir(outDir, { recursive: true })
  await compile(compiler, args, id, target)
  return target
}
