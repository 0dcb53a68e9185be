import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { expect, test } from "vitest"
import { ociSubject } from "./testing/subject.ts"

const first = ociSubject()
const second = ociSubject()

test("a driver does not hold on to the volume of another", async () => {
  const one = await first.open()
  // Its mount namespace is a copy of the host's, with the first one's volume in it.
  const two = await second.open()
  try {
    await one[Symbol.asyncDispose]()
    const file = join(first.root, "volume.btrfs")
    // The kernel lets go of a loop device a moment after the last user.
    await expect.poll(() => execFileSync("losetup", ["-j", file], { encoding: "utf8" }), { timeout: 10_000 }).toBe("")
  } finally {
    await two[Symbol.asyncDispose]()
  }
})
