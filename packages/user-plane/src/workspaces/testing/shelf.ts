import { ManualClock } from "@warren/base/clock.ts"
import { createLog } from "@warren/base/log.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect } from "vitest"
import { plainDisk } from "../disk.ts"
import type { WorkspaceFiles } from "../files.ts"
import { workspaceMigrations } from "../schema.ts"
import { Workspaces } from "../workspaces.ts"

export const context = { signal: new AbortController().signal, caller: { name: "anna" } }
export const code = (expected: string): unknown => expect.objectContaining({ code: expected })

/** Workspaces in a folder of their own, with a clock that stands still and a log that can be read. */
export class Shelf implements AsyncDisposable {
  readonly folder: TempFolder
  readonly database: Database
  readonly clock = new ManualClock()
  readonly lines: string[] = []
  #workspaces: Workspaces | undefined

  private constructor(folder: TempFolder) {
    this.folder = folder
    this.database = new Database(folder.at("warren.db"), { migrations: workspaceMigrations })
  }

  static async make(): Promise<Shelf> {
    const shelf = new Shelf(await TempFolder.make())
    shelf.#workspaces = await shelf.open()
    return shelf
  }

  get workspaces(): Workspaces {
    if (!this.#workspaces) throw new Error("it is not open")
    return this.#workspaces
  }

  /** The same workspaces once more, as after a restart. */
  open(): Promise<Workspaces> {
    const { database, clock, lines, folder } = this
    const log = createLog((line) => lines.push(line))
    return Workspaces.open({ database, clock, log, disk: plainDisk(folder.at("ws")) })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.workspaces[Symbol.asyncDispose]()
    this.database.close()
    await this.folder[Symbol.asyncDispose]()
  }
}

export async function* bytes(...chunks: (string | Uint8Array)[]): AsyncGenerator<Uint8Array, void, void> {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

export async function readText(
  files: WorkspaceFiles,
  path: string,
  range: { offset?: number; limit?: number } = {},
): Promise<string> {
  await using file = await files.openRead(path, range)
  const chunks: Uint8Array[] = []
  for await (const chunk of file.bytes()) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
