import { createHash } from "node:crypto"
import { existsSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { isId } from "@warren/base/id.ts"
import { silentLog } from "@warren/base/log.ts"
import { openProcessDriver } from "@warren/drivers/process/driver.ts"
import type { SandboxId } from "@warren/drivers/sandbox-spec.ts"
import { dist, Home } from "../runner/home.ts"
import { leaks, lookAt } from "../runner/machine.ts"

const triesMax = 200
const lookAgainMs = 50

/** A home whose sandboxes are confined processes: root's are not in it, but where their users get to them. */
export class ConfinedHome extends Home {
  override get driverRoot(): string {
    const root = this.at("sandboxes", "process")
    return join("/run/warren-process", createHash("sha256").update(root).digest("hex").slice(0, 16))
  }

  /** What is there and belongs to nothing that is written down, and stays. */
  async remains(): Promise<string[]> {
    // There is no volume, so none is missing.
    const none = { volumes: 1, loops: 1, launchers: 1 }
    for (let tries = 0; ; tries++) {
      const found = leaks({ ...lookAt(this), ...none, folders: this.#sandboxes() }, true)
      if (found.length === 0 || tries === triesMax) return found
      await pause(lookAgainMs)
    }
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    if (existsSync(this.driverRoot)) await this.#removeAll()
    rmSync(this.driverRoot, { recursive: true, force: true })
    rmSync(this.path, { recursive: true, force: true })
  }

  async #removeAll(): Promise<void> {
    const programs = { init: join(dist, "warren-init"), confine: join(dist, "warren-confine") }
    const options = { root: this.driverRoot, programs, isUnlimitedAllowed: true, log: silentLog }
    await using driver = await openProcessDriver(options)
    for await (const _ of driver.adopt(new AbortController().signal));
    for (const id of this.#sandboxes()) await driver.destroy(id)
  }

  #sandboxes(): SandboxId[] {
    return readdirSync(this.driverRoot).filter((name): name is SandboxId => isId("sbx", name))
  }
}
