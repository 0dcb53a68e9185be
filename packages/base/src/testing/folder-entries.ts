import { readdirSync, type Dirent } from "node:fs"

/** What is in a folder; nothing when it is not there, or gone meanwhile. */
export function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

export function namesIn(folder: string): string[] {
  return entriesOf(folder).map(({ name }) => name)
}
