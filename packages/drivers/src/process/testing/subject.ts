import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { silentLog } from "@warren/base/log.ts"
import { afterAll } from "vitest"
import type { Subject } from "../../conformance.ts"
import { machineImage, openProcessDriver, type ProcessDriver, type ProcessOptions } from "../driver.ts"

const dist = resolve(import.meta.dirname, "../../../../../dist")

/** What `npm run build` compiles. */
export const programs: ProcessOptions["programs"] = {
  init: join(dist, "warren-init"),
  confine: join(dist, "warren-confine"),
}

export interface ProcessSubject extends Subject {
  readonly root: string
  open(): Promise<ProcessDriver>
}

/** A driver in a folder of its own, which is gone after the tests of the file. */
export function processSubject(options: Partial<ProcessOptions> = {}): ProcessSubject {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "wp-")))
  // Made for its owner only; the sandboxes' users pass through it.
  chmodSync(root, 0o711)
  afterAll(() => rmSync(root, { recursive: true, force: true }))
  const isUnlimitedAllowed = process.getuid?.() !== 0
  return {
    root,
    open: () => openProcessDriver({ root, programs, log: silentLog, isUnlimitedAllowed, ...options }),
    image: () => Promise.resolve(machineImage),
  }
}
