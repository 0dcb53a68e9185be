import { execFileSync } from "node:child_process"
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmdirSync,
  rmSync,
  writeFileSync,
  chmodSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { cgroupParent, differences, footprint, lasting } from "./testing/invariants.ts"
import { Fixture, never } from "./testing/fixture.ts"

/** The check itself: whatever a driver could leave behind is planted once, and found. */
describe("what is left behind", () => {
  const fixture = new Fixture()

  it("is found: a mount, a cgroup, a file, an open file, a changed device node", () => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), "wi-")))
    const node = join(tmpdir(), `${cgroupParent(root)}-node`)
    const group = join("/sys/fs/cgroup/memory", cgroupParent(root))
    execFileSync("mknod", [node, "c", "1", "3"])
    const before = footprint(root, [node])
    try {
      mkdirSync(join(root, "at"))
      execFileSync("mount", ["-t", "tmpfs", "none", join(root, "at")])
      mkdirSync(group)
      writeFileSync(join(root, "file"), "")
      chmodSync(node, 0o600)
      const fd = openSync(join(root, "file"), "r")
      const found = differences(before, footprint(root, [node]))
      closeSync(fd)
      for (const part of ["devices: +", "devices: -", "mounts: +", "cgroups: +", "descriptors: +", "files: + file"]) {
        expect(
          found.some((line) => line.startsWith(part)),
          `${part} in ${found.join("\n")}`,
        ).toBe(true)
      }
    } finally {
      execFileSync("umount", [join(root, "at")])
      rmdirSync(group)
      rmSync(node)
      rmSync(root, { recursive: true })
    }
  })

  it("is found: a running sandbox, with its process, namespaces, groups and files", async () => {
    const before = footprint(fixture.root)
    const sandbox = await fixture.start()
    const parts = new Set(differences(before, footprint(fixture.root)).map((line) => line.split(":")[0]))
    expect([...parts].map(String).toSorted()).toEqual(["cgroups", "descriptors", "files", "namespaces", "processes"])
    await fixture.driver.stop(sandbox.id)
    const stopped = differences(before, footprint(fixture.root)).map((line) => line.split(":")[0])
    expect([...new Set(stopped)]).toEqual(["files"])
    await fixture.driver.start(sandbox.id, never)
    await fixture.driver.destroy(sandbox.id)
    expect(await lasting(before, fixture.root)).toEqual([])
  })
})
