import { existsSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { expect, test } from "vitest"
import type { Sandbox } from "../../driver.ts"
import { Fixture, text } from "../testing/fixture.ts"
import { cgroupParent, cgroupsOf } from "../testing/invariants.ts"
import type { Cgroup } from "./cgroup.ts"
import { Courtesy } from "./courtesy.ts"
import { openCgroups } from "./open.ts"

const fixture = new Fixture()

test("a sandbox that takes a processor lets others pass, and works on; paused or destroyed it is in no one's way", async () => {
  await using greedy = await fixture.use({})
  await using modest = await fixture.use({})
  const { group, judge } = judged(greedy)
  judge()
  expect([idle(greedy), group.priority.isLow]).toEqual(["1", true])
  expect(await text(modest, "echo served")).toBe("served\n")
  expect(await text(greedy, "echo served, too")).toBe("served, too\n")
  await group.freeze()
  expect(idle(greedy)).toBe("0")
  group.thaw()
  judge()
  expect(idle(greedy)).toBe("1")
  await fixture.driver.destroy(greedy.id)
  expect(idle(greedy)).toBeUndefined()
})

/** As if it had had a whole processor between two looks: on a machine that is busy with other things nobody has one. */
function judged({ id }: Sandbox): { readonly group: Cgroup; readonly judge: () => void } {
  const group = openCgroups(basename(cgroupParent(fixture.root))).find(id)
  let ms = performance.now()
  const taken = Object.assign(Object.create(group) as Cgroup, { cpuUs: () => ms * 1_000, priority: group.priority })
  const judge = (): void => {
    using courtesy = new Courtesy(
      () => [taken],
      () => undefined,
    )
    for (const _ of [1, 2]) courtesy.look((ms += 1_000))
  }
  return { group, judge }
}

/** What the kernel has been told of its group, wherever that is. */
function idle({ id }: Sandbox): string | undefined {
  const files = cgroupsOf(fixture.root).map((folder) => join(folder, "cpu.idle"))
  const file = files.find((path) => path.includes(id) && existsSync(path))
  return file === undefined ? undefined : readFileSync(file, "utf8").trim()
}
