import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Fault, errnoOf } from "@warren/base/fault.ts"
import { isId } from "@warren/base/id.ts"
import type { SandboxId, SandboxSpec } from "../sandbox-spec.ts"
import type { ProcessName } from "./launcher.ts"

/** What is kept of a sandbox between processes. */
export interface Record {
  readonly spec: SandboxSpec
  /** The first host uid of its range. */
  readonly idBase: number
  /** Which address it has; absent when it has none. */
  readonly slot?: number
}

/** Where one sandbox keeps everything: one folder, so that taking it away is one act. */
export interface Places {
  readonly folder: string
  readonly record: string
  readonly running: string
  /** What the sandbox writes: the layer of its root, those of its grafts, and overlay's work folders beside them. */
  readonly data: string
  /** `/workspace` of a sandbox whose root is read-only and that was given no other. */
  readonly workspace: string
  readonly socket: string
  readonly etc: string
}

const recordName = "record.json"

/**
 * Sandboxes on disk. The record is written last, by rename: a folder without one was being made when its maker died. The
 * running file is written when a start has succeeded. Nothing is synced: after a power cut nothing runs anyway.
 */
export class Store {
  readonly #root: string

  constructor(root: string) {
    this.#root = root
  }

  get root(): string {
    return this.#root
  }

  places(id: SandboxId): Places {
    if (!isId("sbx", id)) throw new Fault("invalid", "that is not the id of a sandbox")
    const folder = join(this.#root, id)
    return {
      folder,
      record: join(folder, recordName),
      running: join(folder, "running.json"),
      data: join(folder, "data"),
      workspace: join(folder, "workspace"),
      socket: join(folder, "init.sock"),
      etc: join(folder, "etc"),
    }
  }

  /** Every folder there is, whole or not. */
  ids(): SandboxId[] {
    return readdirSync(this.#root).filter((name): name is SandboxId => isId("sbx", name))
  }

  /** Makes what the claimed folder holds; the record at the end makes it whole. */
  complete(record: Record, fill: (places: Places, spec: SandboxSpec) => void): void {
    const places = this.places(record.spec.id)
    fill(places, record.spec)
    replace(places.record, record)
  }

  /** A folder that begins with somebody else's has their record, until it is whole and has its own. */
  record(id: SandboxId): Record | undefined {
    const record = readRecord(this.places(id).folder)
    return record?.spec.id === id ? record : undefined
  }

  running(id: SandboxId): ProcessName | undefined {
    return readJson(this.places(id).running) as ProcessName | undefined
  }

  setRunning(id: SandboxId, name: ProcessName): void {
    replace(this.places(id).running, name)
  }

  clearRunning(id: SandboxId): void {
    const places = this.places(id)
    rmSync(places.running, { force: true })
    rmSync(places.socket, { force: true })
  }

  has(id: SandboxId): boolean {
    return isId("sbx", id) && existsSync(this.places(id).folder)
  }
}

/** Of whoever the folder was made for. */
export function readRecord(folder: string): Record | undefined {
  return readJson(join(folder, recordName)) as Record | undefined
}

function replace(path: string, value: object): void {
  writeFileSync(`${path}.tmp`, JSON.stringify(value), { mode: 0o600 })
  renameSync(`${path}.tmp`, path)
}

/**
 * What we wrote, in a folder that nobody else can write to. After a power cut a file may be there without its content: then it
 * had not been written.
 */
function readJson(path: string): unknown {
  try {
    const text = readFileSync(path, "utf8").replaceAll("\0", "")
    return text === "" ? undefined : JSON.parse(text)
  } catch (failure) {
    if (errnoOf(failure) === "ENOENT") return undefined
    throw failure
  }
}
