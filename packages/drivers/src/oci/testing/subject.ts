import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { silentLog } from "@warren/base/log.ts"
import { afterAll } from "vitest"
import type { Subject } from "../../conformance.ts"
import { openOciDriver, type OciDriver, type OciOptions } from "../driver.ts"
import { hostImage } from "../host-image.ts"

const dist = resolve(import.meta.dirname, "../../../../../dist")

/** What `npm run build` compiles. */
export const programs: OciOptions["programs"] = {
  init: join(dist, "warren-init"),
  launch: join(dist, "warren-launch"),
  libraries: join(dist, "crun-lib"),
}

/** Set by the test that runs others as an ordinary user, and made a group for them. */
const cgroupParent = process.env["WARREN_TEST_CGROUP_PARENT"]

/** Test files run side by side, and each has a volume that takes its room on the disk. */
const firstBytes = 1024 ** 3

/** A driver in a folder of its own, which is gone after the tests of the file. */
export function ociSubject(
  options: Partial<OciOptions> = {},
): Subject & { readonly root: string; open(): Promise<OciDriver> } {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "wo-")))
  afterAll(() => rmSync(root, { recursive: true, force: true }))
  const volume = { firstBytes, ...options.volume }
  return {
    root,
    open: () => openOciDriver({ root, programs, log: silentLog, cgroupParent, ...options, volume }),
    image: () => hostImage(join(root, "host-image")),
  }
}
