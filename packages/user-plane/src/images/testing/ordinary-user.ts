import { spawnSync } from "node:child_process"
import { readdirSync, writeFileSync } from "node:fs"
import { silentLog } from "@warren/base/log.ts"
import { bundleProgram } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import {
  canLendLayers,
  canSnapshot,
  type Driver,
  type Layering,
  type Sandbox,
  type Snapshotting,
} from "@warren/drivers/driver.ts"
import { never } from "@warren/drivers/oci/testing/fixture.ts"
import { ociSubject } from "@warren/drivers/oci/testing/subject.ts"
import { type Image, type SandboxId, type SandboxSpec } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { afterAll, beforeAll, expect } from "vitest"
import { Images } from "../images.ts"
import { keeperFor } from "../keeper/open.ts"
import { archiveLimits } from "../limits.ts"
import { writeTar } from "../tar/writer.ts"
import { busyboxTree, file, folder, hardlink, symlink, type Content } from "./archives.ts"
import { keeperSource, possibleLimits } from "./keeper.ts"

export const isRoot = process.getuid?.() === 0
export const own = process.getuid?.() ?? 0
/** Small enough for a test to reach. */
const limits = { ...archiveLimits, entriesMax: 1000, ratioFromBytes: 2_000_000, unpackedBytesMax: 100_000_000 }

/** Files of many owners, most of whom are not whoever imports them. */
export const owned = [
  folder("data/", { uid: 1000, gid: 1000, mode: 0o750 }),
  file("data/mine", "mine", { uid: 1000, gid: 1000, mode: 0o600 }),
  hardlink("data/same", "data/mine"),
  folder("data/hidden/", { uid: 33, gid: 7, mode: 0o700 }),
  file("data/hidden/web", "web", { uid: 33, gid: 33, mode: 0o400 }),
  file("bin/su", "x", { mode: 0o6755, xattrs: new Map([["security.capability", Buffer.alloc(20)]]) }),
  file("data/noted", "x", { uid: 65_534, gid: 65_534, xattrs: new Map([["user.note", Buffer.from("kept")]]) }),
  file("far", "x", { uid: 100_000, gid: 70_000 }),
  folder("shared/", { mode: 0o3775, gid: 1000 }),
  symlink("link", "data/mine"),
]

/** The images of whoever is not root, in this group of tests: opened before them, and all of it gone after them. */
export function ordinaryUser(): OrdinaryUser {
  const user = new OrdinaryUser()
  if (isRoot) return user
  const subject = ociSubject()
  beforeAll(async () => user.begin(await subject.open()))
  afterAll(() => user.end())
  return user
}

class OrdinaryUser {
  driver!: Driver & Layering & Snapshotting
  temp!: TempFolder
  images!: Images
  program!: string
  readonly #made = new Set<SandboxId>()

  async begin(driver: Driver): Promise<void> {
    if (!canLendLayers(driver) || !canSnapshot(driver)) throw new Error("the driver lends nothing")
    this.driver = driver
    this.temp = await TempFolder.make()
    this.program = await bundleProgram(keeperSource, this.temp)
    this.images = await this.open()
  }

  async end(): Promise<void> {
    const { driver, images, temp } = this
    for (const id of this.#made) await driver.destroy(id)
    for (const id of this.#made) images.release(id)
    images.release("test")
    for (const { id, names } of images.list()) if (id !== "host") names.forEach((name) => images.delete(name))
    await images.gc({ stepsMs: 0, blobsMs: 0 })
    expect(foreign(temp.at("images"))).toEqual([])
    await images[Symbol.asyncDispose]()
    await driver[Symbol.asyncDispose]()
    await temp[Symbol.asyncDispose]()
  }

  open(keeper = keeperFor(this.driver, this.program)): Promise<Images> {
    return Images.open({ root: this.temp.at("images"), log: silentLog, limits, keeper })
  }

  drafts(): string[] {
    return readdirSync(this.temp.at("images/drafts"))
  }

  layers(): string[] {
    return readdirSync(this.temp.at("images/layers/sha256"))
  }

  async create(image: Image, changes: Partial<SandboxSpec> = {}): Promise<SandboxId> {
    const spec = specOf(image, { limits: possibleLimits, ...changes })
    this.#made.add(spec.id)
    await this.driver.create(spec, never)
    return spec.id
  }

  async start(name: string, changes: Partial<SandboxSpec> = {}): Promise<Sandbox & AsyncDisposable> {
    const id = await this.create(await this.images.use(name, "test"), changes)
    const sandbox = await this.driver.start(id, never)
    return Object.assign(sandbox, { [Symbol.asyncDispose]: () => this.driver.destroy(id) })
  }

  async rootfs(name: string, ...tree: Content[]): Promise<void> {
    writeFileSync(this.temp.at("tree.tar"), writeTar(busyboxTree(...tree)))
    await this.images.import(this.temp.at("tree.tar"), { name })
  }
}

/** What of a tree belongs to somebody else. */
export function foreign(path: string): string[] {
  // It says no at what is not ours to look into, after it has named it.
  const { stdout } = spawnSync("find", [path, "!", "-uid", String(own)])
  return stdout.toString().split("\n").filter(Boolean)
}
