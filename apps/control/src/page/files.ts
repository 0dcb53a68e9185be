import { readdir, readFile } from "node:fs/promises"
import { extname, join, relative } from "node:path"

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".woff2": "font/woff2",
  ".json": "application/json",
}

/** Best first. */
const encodings = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const

export interface Sent {
  readonly body: Uint8Array<ArrayBuffer>
  readonly type: string
  readonly encoding: string | undefined
}

/** What was built, by its path at the door. Read once: a build that replaces it belongs to the next start. */
export class BuiltFiles {
  readonly #bodies: ReadonlyMap<string, Uint8Array<ArrayBuffer>>

  private constructor(bodies: ReadonlyMap<string, Uint8Array<ArrayBuffer>>) {
    this.#bodies = bodies
  }

  /** Undefined when nothing was built. */
  static async open(folder: string): Promise<BuiltFiles | undefined> {
    const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => [])
    const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
    const bodies = await Promise.all(
      paths.map(async (path) => [`/${relative(folder, path)}`, new Uint8Array(await readFile(path))] as const),
    )
    const files = new BuiltFiles(new Map(bodies))
    return files.#bodies.has("/index.html") ? files : undefined
  }

  /** In the smallest form that the asker takes; undefined when there is no such file. */
  find(path: string, accepted: string): Sent | undefined {
    const type = types[extname(path)]
    const plain = this.#bodies.get(path)
    if (!plain || type === undefined) return undefined
    for (const [encoding, ending] of encodings) {
      const body = takes(accepted, encoding) ? this.#bodies.get(path + ending) : undefined
      if (body) return { body, type, encoding }
    }
    return { body: plain, type, encoding: undefined }
  }
}

function takes(accepted: string, encoding: string): boolean {
  return accepted.split(",").some((one) => {
    const [name = "", quality = "q=1"] = one.split(";").map((part) => part.trim())
    return name === encoding && !/^q=0(\.0*)?$/.test(quality)
  })
}
