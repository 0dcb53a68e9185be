import { code, page, table } from "./markdown.ts"

export interface Failpoint {
  readonly name: string
  readonly file: string
}

const call = /\bfailpoint\("([^"]*)"\)/g

/** Every call in these sources (paths from the top of the repository), in the order of their names. */
export function failpointsOf(files: ReadonlyMap<string, string>): Failpoint[] {
  const product = [...files].filter(([path]) => /^(packages|apps)\//.test(path) && !/\.test\.tsx?$/.test(path))
  const found = product.flatMap(([file, text]) => [...text.matchAll(call)].map(([, name = ""]) => ({ name, file })))
  return found.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** Where a process of Warren can be made to die. */
export function failpointsPage(files: ReadonlyMap<string, string>): string {
  const rows = failpointsOf(files).map(({ name, file }) => [code(name), file])
  return page("Failpoints", "the calls of `failpoint` in packages and apps", [
    `The ${rows.length} moments at which what is on disk and what is there differ. In a build with failpoints, \`FAULT=name:n\` has the process die there when
it comes by for the n-th time, and \`FAULT=name:n:error\` has what is under way fail instead. What ships has none of them: \`tools/bundle.ts\` leaves
them out. \`e2e/chaos\` runs a scripted day dying at each.`,
    table(["name", "file"], rows),
  ])
}
