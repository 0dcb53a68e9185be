/** As people write it: without the registry and the tag that are meant when none is said. */
export function familiarName(name: string): string {
  return name.replace(/^docker\.io\/(?:library\/)?/, "").replace(/:latest$/, "")
}
