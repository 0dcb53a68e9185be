import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { newId } from "@warren/base/id.ts"
import { describe, expect, it } from "vitest"
import { CgroupV2 } from "./v2.ts"

/** Where the second version is mounted, be it without a single controller, as beside the first. */
function mounted(): string | undefined {
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n")
  return mounts.map((line) => line.split(" ")).find(([, , type]) => type === "cgroup2")?.[1]
}

const mount = mounted()
const canTry = process.getuid?.() === 0 && mount !== undefined

/** What can be tried wherever this version is mounted: standing still needs no controller. */
describe.skipIf(!canTry)("a group of the second version", () => {
  it("stands still and goes on, and says which", async () => {
    const folder = join(mount ?? "", `warren-test-${newId("cgr")}`)
    mkdirSync(folder)
    const child = spawn("sh", ["-c", "while :; do read line; echo $line; done"], { stdio: ["pipe", "pipe", "ignore"] })
    try {
      writeFileSync(join(folder, "cgroup.procs"), String(child.pid))
      const group = new CgroupV2(folder)
      expect(group.isFrozen()).toBe(false)
      await group.freeze()
      expect(group.isFrozen()).toBe(true)
      child.stdin.write("awake\n")
      expect(readFileSync(join(folder, "cgroup.events"), "utf8")).toContain("frozen 1")
      group.thaw()
      expect(group.isFrozen()).toBe(false)
      expect(String((await once(child.stdout, "data"))[0])).toBe("awake\n")
    } finally {
      child.kill("SIGKILL")
      await once(child, "exit")
      rmdirSync(folder)
    }
  })
})
