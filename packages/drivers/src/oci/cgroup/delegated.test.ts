import { describe, expect, it } from "vitest"
import { delegated, type OwnGroups } from "./delegated.ts"

const controllers = ["cpu", "cpuacct", "memory", "pids", "freezer"]
const v1 = new Map([...controllers, "devices"].map((name) => [name, `/sys/fs/cgroup/${name}`]))
const groups = (changes: Partial<OwnGroups>): OwnGroups => ({
  mounts: { v1: new Map(), v2: "/sys/fs/cgroup" },
  self: "0::/user.slice/user-1001.slice/user@1001.service/app.slice/warren.service\n",
  parent: undefined,
  canWrite: () => false,
  ...changes,
})

describe("version 2", () => {
  it("takes our own group where it may be written", () => {
    const canWrite = (path: string) => path.endsWith("/warren.service")
    expect(delegated(groups({ canWrite }))).toEqual({
      version: 2,
      folder: "/sys/fs/cgroup/user.slice/user-1001.slice/user@1001.service/app.slice/warren.service",
    })
  })

  it("takes the one above when a runner moved into a leaf of it", () => {
    const self = "0::/anna.service/warren-runner\n"
    expect(delegated(groups({ self, canWrite: () => true }))).toEqual({
      version: 2,
      folder: "/sys/fs/cgroup/anna.service",
    })
  })

  it("says that there is none", () => {
    expect(delegated(groups({}))).toEqual({ missing: "no cgroup was delegated to this user" })
    expect(delegated(groups({ mounts: { v1: new Map(), v2: undefined } }))).toHaveProperty("missing")
  })
})

describe("version 1", () => {
  const mounts = { v1, v2: "/sys/fs/cgroup/unified" }
  const self = "3:cpu,cpuacct:/\n2:memory:/some/where\n1:pids:/\n0::/\n"

  it("takes the group that was named, of every controller it needs, and not devices", () => {
    const found = delegated(groups({ mounts, self, parent: "/anna", canWrite: (path) => path.endsWith("/anna") }))
    expect(found).toEqual({
      version: 1,
      folders: new Map(controllers.map((name) => [name, `/sys/fs/cgroup/${name}/anna`])),
    })
  })

  it("takes our own where that may be written, and names the first controller that is missing", () => {
    const canWrite = (path: string) => path === "/sys/fs/cgroup/memory/some/where"
    expect(delegated(groups({ mounts, self, canWrite }))).toEqual({
      missing: "no cpu cgroup was delegated to this user",
    })
  })
})
