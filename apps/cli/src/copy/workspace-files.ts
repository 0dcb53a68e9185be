import type { WorkspaceEntry } from "@warren/protocol/user-plane/workspaces.ts"
import type { z } from "zod"
import { allPages } from "../runner/pages.ts"
import type { Runner } from "../runner/runner.ts"
import { upload } from "../runner/upload.ts"
import { ifAny, runInside, type Entry, type InsideFiles } from "./inside.ts"

const entriesMax = 100_000
const types = { file: "file", folder: "dir", link: "symlink", other: "socket" } as const
const modeBits = 0o777

/** The files of a workspace, whether or not a session has it. */
export class WorkspaceFiles implements InsideFiles {
  readonly #runner: Runner
  readonly #name: string
  #session: Promise<{ readonly id: string }> | undefined

  constructor(runner: Runner, name: string) {
    this.#runner = runner
    this.#name = name
  }

  async stat(path: string): Promise<Entry> {
    const top = relative(path)
    // The top itself is no entry of anything; asking for the workspace says whether it is there.
    if (top !== "") return entryOf(await this.#runner.call("workspace.stat", this.#at(path)))
    await this.#runner.call("workspace.get", { name: this.#name })
    return { name: this.#name, type: "dir", mode: 0o755 }
  }

  statIfAny(path: string): Promise<Entry | undefined> {
    return ifAny(this.stat(path))
  }

  async list(path: string): Promise<readonly Entry[]> {
    const input = this.#at(path)
    const ask = (page: { limit: number }) => this.#runner.call("workspace.files", { ...page, ...input })
    return (await allPages(ask, entriesMax)).map(entryOf)
  }

  async *read(path: string): AsyncGenerator<Buffer> {
    await using conversation = await this.#runner.open("workspace.read", this.#at(path))
    for (let item = await conversation.next(); item !== undefined; item = await conversation.next()) yield item.bytes
  }

  async write(path: string, source: AsyncIterable<Uint8Array>, mode?: number): Promise<void> {
    const wanted = mode === undefined ? {} : { mode: mode & modeBits }
    await using conversation = await this.#runner.open("workspace.write", { ...this.#at(path), ...wanted })
    await upload(conversation, source, () => undefined)
  }

  async mkdir(path: string): Promise<void> {
    if (relative(path) !== "") await this.#runner.call("workspace.mkdir", this.#at(path))
  }

  /** In a session that has the workspace for as long as the copy takes: made when it is needed, which is seldom. */
  async run(argv: readonly string[]): Promise<boolean> {
    this.#session ??= this.#runner.call("session.create", { workspace: this.#name, network: { mode: "none" } })
    const { id } = await this.#session
    return runInside(this.#runner, { session: id, argv: [...argv], cwd: "/workspace" })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const session = await this.#session?.catch(() => undefined)
    if (session) await this.#runner.callAnyway("session.delete", { id: session.id })
  }

  #at(path: string) {
    return { name: this.#name, path: relative(path) }
  }
}

/** From the top of the workspace, without the slashes and dots a person may write. */
function relative(path: string): string {
  return path
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .join("/")
}

function entryOf({ name, kind, mode, target }: z.output<typeof WorkspaceEntry>): Entry {
  return { name, type: types[kind], mode, target }
}
