import { readFileSync } from "node:fs"
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { afterEach, expect, test } from "vitest"
import { checks } from "./checks.ts"

/** A rule that has never failed is not a rule: each check, run as it is, must find what is planted here and nothing in a clean tree. */
const configuration = [".oxlintrc.json", ".oxfmtrc.json", "knip.json", "tsconfig.json"]
const manifest = (fields: object): string => `${JSON.stringify(fields, null, 2)}\n`
const clean = {
  "package.json": manifest({ name: "planted", private: true, workspaces: ["packages/*"], type: "module" }),
  "packages/plant/package.json": manifest({ name: "@warren/plant", version: "0.0.0", private: true, type: "module" }),
  "packages/plant/src/water.ts": "export const water = (): Promise<number> => Promise.resolve(1)\n",
  "packages/plant/src/water.test.ts": `import { water } from "./water.ts"\n\nawait water()\n`,
}
const folders: string[] = []
afterEach(() => Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true }))))

async function plant(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "warren-planted-"))
  folders.push(folder)
  for (const name of configuration) await cp(name, join(folder, name))
  await symlink(resolve("node_modules"), join(folder, "node_modules"))
  for (const [path, text] of Object.entries({ ...clean, ...files })) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  return folder
}

async function run(name: string, files: Readonly<Record<string, string>>): Promise<{ ok: boolean; output: string }> {
  const check = checks.find((one) => one.name === name)
  if (!check) throw new Error(`there is no check "${name}"`)
  return check.run(await plant(files))
}

const source = "packages/plant/src/water.ts"
const testOf = "packages/plant/src/water.test.ts"
const pageConfig = "apps/web/tsconfig.json"
const pageTypes = readFileSync(pageConfig, "utf8")
const planted = [
  ["types", "TS2322", { [source]: `export const water = (): Promise<number> => Promise.resolve("1")\n` }],
  [
    "types of the page",
    "TS2322",
    { [pageConfig]: pageTypes, "apps/web/src/page.tsx": "export const page: number = <p />\n" },
  ],
  ["lint", "no-floating-promises", { [testOf]: `import { water } from "./water.ts"\n\nwater()\n` }],
  ["lint", "no-explicit-any", { [source]: `${clean[source]}export const dirty = (value: any): unknown => value\n` }],
  ["format", "water.ts", { [source]: "export const   water = ():Promise<number> => Promise.resolve( 1 );\n" }],
  ["dead code", "unusedExport", { [source]: `${clean[source]}export const unusedExport = 1\n` }],
  ["dead code", "forgotten.ts", { "bench/forgotten.ts": "export const forgotten = 1\n" }],
  ["dead code", "left-pad", { [source]: `import "left-pad"\n\n${clean[source]}` }],
  ["architecture", "boundary", { "packages/base/src/a.ts": `import "@warren/protocol/b.ts"\n` }],
  ["generated files", "faults.md", { "docs/reference/faults.md": "# Faults\n" }],
] as const

test.each(planted)("%s catches %s", async (name, word, files) => {
  const { ok, output } = await run(name, files)
  expect(output).toContain(word)
  expect(ok).toBe(false)
})

test.each(["types", "lint", "format", "dead code"])("%s: a clean tree passes", async (name) => {
  expect(await run(name, {})).toMatchObject({ ok: true })
})
