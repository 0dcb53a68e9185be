import { execFileSync } from "node:child_process"
import { mkdirSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { hostileArchives } from "../testing/hostile.ts"
import { isRoot, ordinaryUser, owned } from "../testing/ordinary-user.ts"
import { portrait } from "../testing/portrait.ts"

/** Run by `rootless.live.test.ts`, as somebody who is not root. */
describe.skipIf(isRoot)("an ordinary user's images", () => {
  const user = ordinaryUser()
  // Layers that could be touched.
  beforeAll(() => user.rootfs("tree", ...owned))

  describe("hostile archives", () => {
    const place = join(tmpdir(), `warren-canary-${process.pid}`)
    beforeAll(() => {
      mkdirSync(join(place, "dir"), { recursive: true })
      for (const name of ["secret", "dir/inner"]) writeFileSync(join(place, name), "canary")
      for (const name of ["secret", "dir/inner", "dir", ""]) utimesSync(join(place, name), 1, 2)
    })
    afterAll(() => void execFileSync("rm", ["-rf", place]))

    test.each(Object.entries(hostileArchives(place)))(
      "%s: is refused by name, and touches nothing",
      async (_, { archive, says }) => {
        writeFileSync(user.temp.at("hostile.tar"), archive)
        portrait(place)
        const before = [portrait(place), user.layers()]
        const failure: unknown = await user.images
          .import(user.temp.at("hostile.tar"), { name: "bad", format: "rootfs" })
          .catch((thrown: unknown) => thrown)
        expect(failure).toBeInstanceOf(Fault)
        expect((failure as Fault).message).toContain(says)
        expect(["invalid", "limit"]).toContain((failure as Fault).code)
        expect([portrait(place), user.layers()]).toEqual(before)
        expect(user.drafts()).toEqual([])
      },
    )
  })
})
