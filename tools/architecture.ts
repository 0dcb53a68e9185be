import { dirname, join } from "node:path/posix"
import { cyclesOf } from "./cycles.ts"
import { readModule, type Import, type Module } from "./imports.ts"

/** Who may import whom. A folder that is not here may not exist: its place in the picture has to be decided first. */
const boundaries: Readonly<Record<string, readonly string[]>> = {
  "packages/base": [],
  "packages/protocol": ["packages/base"],
  "packages/drivers": ["packages/base", "packages/protocol"],
  "packages/agents": ["packages/base", "packages/protocol"],
  "packages/user-plane": ["packages/base", "packages/protocol", "packages/drivers", "packages/agents"],
  "packages/sdk": ["packages/base", "packages/protocol"],
  "packages/mcp": ["packages/base", "packages/protocol", "packages/sdk"],
  "packages/e2b": ["packages/base", "packages/protocol", "packages/sdk"],
  "apps/control": ["packages/base", "packages/protocol", "packages/e2b", "packages/mcp"],
  "apps/launcher": ["packages/base", "packages/protocol"],
  "apps/runner": ["packages/base", "packages/protocol", "packages/user-plane", "packages/drivers", "packages/agents"],
  "apps/supervisor": ["packages/base", "packages/protocol", "packages/agents"],
  "apps/cli": ["packages/base", "packages/protocol", "packages/sdk", "packages/mcp"],
  "apps/web": ["packages/base", "packages/protocol", "packages/sdk"],
}

/** What sits beside the product. It may import what it needs of it, and of the closed folders only these. */
const besides: Readonly<Record<string, readonly string[]>> = {
  tools: ["bench"],
  bench: ["e2e"],
  e2e: [],
  init: [],
  launch: [],
  confine: [],
}
/** Nothing that runs for a user may lean on these. */
const closed = new Set(["tools", "bench", "e2e"])
/** Tests of a package may build the C programs they run, with the `build.ts` of their folder. */
const openToTests = new Set(["init", "launch", "confine"])
const vagueNames = new Set(["util", "utils", "helper", "helpers", "common", "misc"])

export type Rule =
  | "boundary"
  | "unplaced"
  | "test-import"
  | "by-name"
  | "declared"
  | "computed"
  | "barrel"
  | "vague-name"
  | "cycle"

export interface Violation {
  readonly rule: Rule
  readonly file: string
  readonly message: string
}

interface Source {
  readonly path: string
  /** `packages/base` or `tools`. */
  readonly owner: string
  readonly module: Module
}

/** Everything in these files (paths from the top of the repository, manifests included) that breaks a rule. */
export function violations(files: ReadonlyMap<string, string>): Violation[] {
  const manifests = new Map([...files].filter(([path]) => path.endsWith("package.json")))
  const sources = [...files]
    .filter(([path]) => !manifests.has(path))
    .map(([path, text]) => ({ path, owner: ownerOf(path), module: readModule(path, text) }))
  return [
    ...sources.flatMap((source) => [...shapeOf(source), ...importsOf(source, manifests)]),
    ...cycles(sources, files),
  ]
}

function* shapeOf({ path, owner, module }: Source): Generator<Violation> {
  if (!(owner in boundaries) && !(owner in besides)) {
    yield { rule: "unplaced", file: path, message: `say in tools/architecture.ts what ${owner} may import` }
  }
  const vague = path.split("/").find((part) => vagueNames.has(part.replace(/\..*$/, "")))
  if (vague) yield { rule: "vague-name", file: path, message: `"${vague}" says nothing: name it after what is in it` }
  if (/(^|\/)index\.\w+$/.test(path) && module.onlyReexports) {
    yield { rule: "barrel", file: path, message: "only re-exports: import each thing from the file it is in" }
  }
}

function importsOf(source: Source, manifests: ReadonlyMap<string, string>): Violation[] {
  const found = source.module.imports.flatMap((one) => [...importOf(source, one, manifests)])
  // A file that imports four things from one wrong place has one thing wrong with it.
  return [...new Map(found.map((violation) => [`${violation.rule} ${violation.message}`, violation])).values()]
}

function* importOf(source: Source, one: Import, manifests: ReadonlyMap<string, string>): Generator<Violation> {
  const { path: file, owner } = source
  if (one.specifier === undefined) {
    // A launcher imports what was built, which is no source and has no place in the picture.
    const isLauncher = file.startsWith(`${owner}/bin/`)
    if (owner in boundaries && !isLauncher)
      yield { rule: "computed", file, message: "import a name that can be read here" }
    return
  }
  const target = resolve(file, one.specifier)
  if (target === undefined) return
  const goal = ownerOf(target)
  if (/\.test\.\w+$/.test(target)) yield { rule: "test-import", file, message: `${target} is a test` }
  if (goal === owner) return
  if (isForbidden(source, goal))
    yield { rule: "boundary", file, message: `${owner} may not import ${goal} (${one.specifier})` }
  if (goal.startsWith("packages/") && !/^@warren\/[\w-]+\/.+\.tsx?$/.test(one.specifier)) {
    yield { rule: "by-name", file, message: `write @warren/${goal.slice(9)}/<file>.ts instead of ${one.specifier}` }
  }
  if (owner in boundaries && goal.startsWith("packages/") && !declares(manifests.get(`${owner}/package.json`), goal)) {
    yield { rule: "declared", file, message: `add "@warren/${goal.slice(9)}": "*" to ${owner}/package.json` }
  }
}

function isForbidden({ path, owner }: Source, goal: string): boolean {
  if (!(owner in boundaries)) return closed.has(goal) && !besides[owner]?.includes(goal)
  if (openToTests.has(goal) && path.endsWith(".test.ts")) return false
  return !boundaries[owner]?.includes(goal)
}

function declares(manifest: string | undefined, goal: string): boolean {
  const { dependencies = {} } = JSON.parse(manifest ?? "{}") as { dependencies?: Record<string, string> }
  return `@warren/${goal.slice("packages/".length)}` in dependencies
}

/** Knots of files, leaving out types: those are gone before anything runs, so they cannot meet half-made. */
function cycles(sources: readonly Source[], files: ReadonlyMap<string, string>): Violation[] {
  const graph = sources.map(({ path, module }): [string, string[]] => {
    const values = module.imports.filter((one) => !one.isTypeOnly && one.specifier !== undefined)
    const targets = values.map((one) => resolve(path, one.specifier ?? "") ?? "")
    return [path, targets.filter((target) => files.has(target))]
  })
  return cyclesOf(new Map(graph)).map((cycle) => ({
    rule: "cycle",
    file: cycle[0] ?? "",
    message: [...cycle, cycle[0]].join(" → "),
  }))
}

/** The file an import of ours means; undefined for what is not ours. */
function resolve(from: string, specifier: string): string | undefined {
  if (specifier.startsWith(".")) return join(dirname(from), specifier)
  const ours = /^@warren\/([\w-]+)\/?(.*)$/.exec(specifier)
  if (!ours) return undefined
  const [, name = "", file = ""] = ours
  // Apps have names too. They export nothing, but saying "boundary" is clearer than "module not found".
  const home = `apps/${name}` in boundaries ? `apps/${name}` : `packages/${name}`
  return join(home, "src", file)
}

function ownerOf(path: string): string {
  const [top = "", second = ""] = path.split("/")
  return top === "packages" || top === "apps" ? `${top}/${second}` : top
}
