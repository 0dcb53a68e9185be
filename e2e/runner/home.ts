import { existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { isId } from "@warren/base/id.ts"
import { silentLog } from "@warren/base/log.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import type { SandboxId, SnapshotId } from "@warren/drivers/sandbox-spec.ts"

/** What `npm run build` makes. */
export const dist = resolve(import.meta.dirname, "../../dist")

/** A folder that is WARREN_HOME for a test. Whatever state its runner was left in, nothing of it stays on the machine. */
export class Home implements AsyncDisposable {
  readonly path: string

  /** Short: there are sockets below it. */
  constructor(path = mkdtempSync(join(tmpdir(), "wk-"))) {
    this.path = realpathSync(path)
  }

  at(...names: string[]): string {
    return join(this.path, "runner", ...names)
  }

  /** The folder of the driver: its groups, mounts and loop devices are found by it. */
  get driverRoot(): string {
    return this.at("sandboxes", "oci")
  }

  get database(): string {
    return this.at("internal", "warren.db")
  }

  /** The runner has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (existsSync(this.driverRoot)) await this.#removeSandboxes()
    rmSync(this.path, { recursive: true, force: true })
  }

  async #removeSandboxes(): Promise<void> {
    const programs = {
      init: join(dist, "warren-init"),
      launch: join(dist, "warren-launch"),
      libraries: join(dist, "crun-lib"),
    }
    await using driver = await openOciDriver({ root: this.driverRoot, programs, log: silentLog })
    for await (const _ of driver.adopt(new AbortController().signal));
    const names = readdirSync(join(this.driverRoot, "volume"))
    for (const id of names.filter((name): name is SandboxId => isId("sbx", name))) await driver.destroy(id)
    for (const id of names.filter((name): name is SnapshotId => isId("snp", name))) await driver.removeSnapshot(id)
  }
}
