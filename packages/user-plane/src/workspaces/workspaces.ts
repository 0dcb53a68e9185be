import { chown } from "node:fs/promises"
import { join } from "node:path"
import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Database } from "@warren/base/sqlite/database.ts"
import type { Row } from "@warren/base/sqlite/value.ts"
import { Turns } from "@warren/base/turns.ts"
import type { Workspace } from "@warren/protocol/user-plane/workspaces.ts"
import type { z } from "zod"
import type { Disk } from "@warren/drivers/driver.ts"
import { WorkspaceFiles } from "./files.ts"
import { makeOwnFolder, type Ownership } from "./folder-handle.ts"
import { emptyFolder } from "./remove-tree.ts"
import { shareBelow } from "./shared-folder.ts"

export type WorkspaceData = z.output<typeof Workspace>

const defaultLimitBytes = 10 * 1024 * 1024 * 1024
const workspacesMax = 1_000
/** How old a measurement may be before it is taken anew. */
const freshMs = 60_000
/** The user that commands in a sandbox run as. On disk files have the owners they have inside. */
const insideId = 1000

interface WorkspacesOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly disk: Disk
}

/** Folders that outlive sandboxes, shared by the sessions of one user. */
export class Workspaces implements AsyncDisposable {
  readonly #options: WorkspacesOptions
  readonly #turns = new Turns()
  readonly #ownership = ownershipHere()
  #measuring: Promise<void> | undefined
  #isClosed = false

  private constructor(options: WorkspacesOptions) {
    this.#options = options
  }

  /** Ends what was cut off: what was being made or deleted goes, and drafts of files with it. */
  static async open(options: WorkspacesOptions): Promise<Workspaces> {
    await makeOwnFolder(options.disk.folder, 0o700)
    const workspaces = new Workspaces(options)
    for (const { name, state } of workspaces.#states()) {
      if (state === "ready") await workspaces.#sweep(name)
      else await workspaces.#finishDelete(name)
    }
    return workspaces
  }

  async create(name: string, limitBytes = defaultLimitBytes): Promise<WorkspaceData> {
    return this.#turns.take(name, async () => {
      this.#begin(name, limitBytes)
      try {
        failpoint("workspace/noted")
        await this.#make(name, limitBytes)
        failpoint("workspace/made")
        this.#options.database.run("UPDATE workspaces SET state = 'ready' WHERE name = ?", [name])
      } catch (failure) {
        await this.#finishDelete(name)
        throw failure
      }
      return this.get(name)
    })
  }

  /** The one there is, or a new one. */
  async ensure(name: string): Promise<WorkspaceData> {
    return this.#find(name) ?? this.create(name).catch((failure: unknown) => this.#find(name) ?? rethrow(failure))
  }

  get(name: string): WorkspaceData {
    const workspace = this.#find(name)
    if (!workspace) throw new Fault("not_found", `there is no workspace ${name}`, { subject: `workspace:${name}` })
    return workspace
  }

  /** By name, those after `after`. Sizes that are old are measured anew for the next who asks. */
  list(after: string, limit: number): WorkspaceData[] {
    const sql = `${select} WHERE name > ? AND state = 'ready' ORDER BY name LIMIT ?`
    const found = this.#options.database.all(sql, [after, limit], (row) => this.#dataOf(row))
    this.#measuring ??= this.#measureOld(found)
    return found
  }

  async measure(name: string): Promise<WorkspaceData> {
    this.get(name)
    const bytes = await this.#options.disk.usage(this.#at(name))
    const values = [bytes, this.#options.clock.now(), name]
    this.#options.database.run("UPDATE workspaces SET used_bytes = ?, measured_at = ? WHERE name = ?", values)
    return this.get(name)
  }

  /** Whether there was one. */
  async delete(name: string, options: { readonly isForced?: boolean } = {}): Promise<boolean> {
    return this.#turns.take(name, async () => {
      const workspace = this.#find(name)
      if (!workspace) return false
      this.#options.database.transaction(() => {
        const { holders } = this.get(name)
        if (holders.length > 0 && !options.isForced) throw held(name, holders)
        this.#options.database.run("UPDATE workspaces SET state = 'deleting' WHERE name = ?", [name])
      })
      await this.#finishDelete(name)
      return true
    })
  }

  /** Notes that a session has it; it is not deleted from under the session. Again is fine. Returns what to mount. */
  hold(name: string, sessionId: string): string {
    return this.#options.database.transaction(() => {
      this.get(name)
      const sql = "INSERT INTO workspace_holders (name, session_id) VALUES (?, ?) ON CONFLICT DO NOTHING"
      this.#options.database.run(sql, [name, sessionId])
      return this.folderOf(name)
    })
  }

  /** A session has ended: whatever it held is free. */
  release(sessionId: string): void {
    this.#options.database.run("DELETE FROM workspace_holders WHERE session_id = ?", [sessionId])
  }

  /** What is mounted in sandboxes. */
  folderOf(name: string): string {
    return join(this.#at(name), "files")
  }

  files(name: string): WorkspaceFiles {
    this.get(name)
    return new WorkspaceFiles({
      top: this.folderOf(name),
      staging: join(this.#at(name), "staging"),
      ownership: this.#ownership,
      checkRoom: (moreBytes) => this.#checkRoom(name, moreBytes),
      wrote: (bytes) => this.#wrote(name, bytes),
      alone: (work) => this.#turns.take(name, work),
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await this.#measuring
  }

  /** Drafts and rubbish of a runner that was killed. One workspace that cannot be reached must not keep the others. */
  async #sweep(name: string): Promise<void> {
    await emptyFolder(join(this.#at(name), "staging")).catch((failure: unknown) =>
      this.#options.log("error", "workspace.open", { workspace: name, ok: false, message: messageOf(failure) }),
    )
  }

  #begin(name: string, limitBytes: number): void {
    const { database, clock } = this.#options
    database.transaction(() => {
      if (this.#states().some((known) => known.name === name))
        throw new Fault("conflict", `there is a workspace ${name} already`, { subject: `workspace:${name}` })
      if (this.#states().length >= workspacesMax)
        throw new Fault("limit", `there are ${workspacesMax} workspaces already`, { hint: "delete some" })
      const values = [name, clock.now(), limitBytes]
      database.run("INSERT INTO workspaces (name, state, created_at, limit_bytes) VALUES (?, 'making', ?, ?)", values)
    })
  }

  async #make(name: string, limitBytes: number): Promise<void> {
    const { id, folderMode } = this.#ownership
    await this.#options.disk.create(this.#at(name), limitBytes)
    await makeOwnFolder(this.#at(name), 0o700)
    await makeOwnFolder(join(this.#at(name), "staging"), 0o700)
    await makeOwnFolder(this.folderOf(name), folderMode)
    if (id !== undefined) await chown(this.folderOf(name), id, id)
    else await shareBelow(this.folderOf(name), this.#options.log)
  }

  async #finishDelete(name: string): Promise<void> {
    await this.#options.disk.remove(this.#at(name))
    failpoint("workspace/removed")
    this.#options.database.run("DELETE FROM workspaces WHERE name = ?", [name])
  }

  /** Where the disk knows no limit, at least nobody goes over it from here. */
  async #checkRoom(name: string, moreBytes: number): Promise<void> {
    const known = this.get(name)
    if (known.limit !== "api") return
    const { usedBytes = 0, limitBytes } = this.#isFresh(known) ? known : await this.measure(name)
    if (usedBytes + moreBytes > limitBytes)
      throw new Fault("limit", `the workspace ${name} holds at most ${limitBytes} bytes`, {
        subject: `workspace:${name}`,
      })
  }

  /** Until it is measured again, everything written counts as more. */
  #wrote(name: string, bytes: number): void {
    this.#options.database.run("UPDATE workspaces SET used_bytes = used_bytes + ? WHERE name = ?", [bytes, name])
  }

  async #measureOld(workspaces: readonly WorkspaceData[]): Promise<void> {
    // A promise comes first, so that whoever began this knows of it before it ends.
    await Promise.resolve()
    for (const { name } of workspaces.filter((workspace) => !this.#isFresh(workspace))) {
      if (this.#isClosed) break
      await this.measure(name).catch((failure: unknown) =>
        this.#options.log("warn", "workspace.usage", { workspace: name, ok: false, message: messageOf(failure) }),
      )
    }
    this.#measuring = undefined
  }

  #isFresh({ measuredAt }: WorkspaceData): boolean {
    return measuredAt !== undefined && this.#options.clock.now() - Date.parse(measuredAt) < freshMs
  }

  #find(name: string): WorkspaceData | undefined {
    const sql = `${select} WHERE name = ? AND state = 'ready'`
    return this.#options.database.get(sql, [name], (row) => this.#dataOf(row))
  }

  #states(): { name: string; state: string }[] {
    const read = (row: Row) => ({ name: String(row["name"]), state: String(row["state"]) })
    return this.#options.database.all("SELECT name, state FROM workspaces", [], read)
  }

  #at(name: string): string {
    return join(this.#options.disk.folder, name)
  }

  #dataOf(row: Row): WorkspaceData {
    const limitBytes = Number(row["limit_bytes"])
    const holds = this.#options.disk.unlimited === undefined ? "disk" : "api"
    return {
      name: String(row["name"]),
      createdAt: new Date(Number(row["created_at"])).toISOString(),
      limitBytes,
      limit: limitBytes === 0 ? "none" : holds,
      ...(row["used_bytes"] === null ? {} : { usedBytes: Number(row["used_bytes"]) }),
      ...(row["measured_at"] === null ? {} : { measuredAt: new Date(Number(row["measured_at"])).toISOString() }),
      holders: JSON.parse(String(row["holders"])) as string[],
    }
  }
}

const select = `SELECT *, (SELECT json_group_array(session_id) FROM workspace_holders h WHERE h.name = workspaces.name) AS holders
  FROM workspaces`

/** Root gives files the owner that commands inside have. Others cannot, and leave them open to whoever can come near: sandboxes alone. */
function ownershipHere(): Ownership {
  if (process.getuid?.() === 0) return { id: insideId, fileMode: 0o644, folderMode: 0o755 }
  return { id: undefined, fileMode: 0o666, folderMode: 0o777 }
}

function held(name: string, holders: readonly string[]): Fault {
  return new Fault("conflict", `the workspace ${name} is mounted in ${holders.join(", ")}`, {
    hint: "stop those sessions first, or force it",
    subject: `workspace:${name}`,
  })
}

function rethrow(failure: unknown): never {
  throw failure
}
