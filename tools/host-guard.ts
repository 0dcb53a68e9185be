import { afterAll, beforeAll, expect } from "vitest"
import { changes, solidState } from "./host.ts"

/**
 * Around every file of live tests: device nodes and settings of the kernel are afterwards what they were. crun 1.8 gives the host's
 * /dev/null to a sandbox that has it as stdin, and no test that looks at sandboxes sees that.
 */
const isLive = expect.getState().testPath?.endsWith(".live.test.ts") === true

if (isLive) {
  let before: ReturnType<typeof solidState> | undefined
  beforeAll(() => {
    before = solidState()
  })
  afterAll(() => {
    if (before) expect(changes(before, solidState()), "the machine is not what it was").toEqual([])
  })
}
