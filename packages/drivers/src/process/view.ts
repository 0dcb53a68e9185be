import { join } from "node:path"
import type { Places } from "../oci/store.ts"

/** The three folders a sandbox may write to, by the names they have in every other driver. */
const folders = { "/workspace": "workspace", "/home/user": "home", "/tmp": "tmp" } as const

/**
 * How a sandbox without a mount namespace shows its folders. Requests name them as everywhere (`/workspace/a.txt`) and are
 * translated; commands see the host's paths, and find them by `$WORKSPACE`, `$HOME` and `$TMPDIR`.
 */
export class View {
  readonly folders: readonly string[]
  readonly workspace: string
  readonly environment: Readonly<Record<string, string>>
  readonly #table: readonly (readonly [from: string, to: string])[]

  constructor({ folder, data }: Pick<Places, "folder" | "data">) {
    const at = (name: string): string => join(data, name)
    this.folders = Object.values(folders).map(at)
    this.workspace = at(folders["/workspace"])
    this.environment = { HOME: at(folders["/home/user"]), TMPDIR: at(folders["/tmp"]), WORKSPACE: this.workspace }
    // A path that a command printed may come back, and Warren's own folder may be below the host's /tmp.
    this.#table = [
      [folder, folder],
      ...Object.entries(folders).map(([from, name]): [string, string] => [from, at(name)]),
    ]
  }

  /** The host's path for a path of the sandbox. What is in none of its folders is the same in both. */
  path(inside: string): string {
    const entry = this.#table.find(([from]) => inside === from || inside.startsWith(`${from}/`))
    return entry ? entry[1] + inside.slice(entry[0].length) : inside
  }

  /** A request to init, as init must see it. */
  request(asked: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const seen: Record<string, unknown> = { ...asked }
    for (const name of ["cwd", "path", "from", "to"]) {
      const value = asked[name]
      if (typeof value === "string") seen[name] = this.path(value)
    }
    const isCommand = asked["op"] === "spawn" || asked["op"] === "shell.open"
    if (isCommand) seen["env"] = { ...this.environment, ...(asked["env"] as Record<string, string> | undefined) }
    return seen
  }
}
