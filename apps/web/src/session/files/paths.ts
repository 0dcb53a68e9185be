/** The folder something is in. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf("/")))
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1)
}

export function inFolder(folder: string, name: string): string {
  return folder.endsWith("/") ? folder + name : `${folder}/${name}`
}

/** Whether it is this, or somewhere below it. */
export function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`)
}

/** The folders from the top down to this one, with what each is called. */
export function crumbs(path: string): readonly (readonly [path: string, name: string])[] {
  const names = path.split("/").filter(Boolean)
  return [["/", "/"], ...names.map((name, index) => [`/${names.slice(0, index + 1).join("/")}`, name] as const)]
}
