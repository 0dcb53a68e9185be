import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { record } from "../security/results.ts"
import { controlChapter } from "./control-chapter.ts"
import { ControlDoor } from "./control-door.ts"
import { FaultBuild } from "./fault-build.ts"
import { namesOf } from "./names.ts"
import { Story } from "./story.ts"

/** Every failpoint of the control plane at each of these passes; WARREN_FAILPOINTS=all: at all of its first eight. */
const passes = process.env["WARREN_FAILPOINTS"] === "all" ? [1, 2, 3, 4, 5, 6, 7, 8] : [1]

describe("a control plane that dies at a failpoint", () => {
  let build: FaultBuild
  let struck = 0
  const readyMs: number[] = []

  beforeAll(async () => {
    build = await FaultBuild.make("control")
  })
  afterAll(() => {
    build[Symbol.dispose]()
    const slowest = Math.round(Math.max(0, ...readyMs))
    console.log(`failpoints: ${struck} strikes of the control plane, ready again after at most ${slowest} ms`)
    record("failpoints-control", { cases: struck, readyMsMax: slowest })
  })

  it.each(namesOf("control"))(
    "%s: everything acknowledged is there, once, and its log is whole",
    { timeout: 300_000 },
    async (name) => {
      const before = struck
      for (const pass of passes) if (!(await day(`${name}:${pass}`))) break
      // At the first pass at least.
      expect(struck).toBeGreaterThan(before)
    },
  )

  /** Whether it was struck. */
  async function day(fault: string): Promise<boolean> {
    const home = mkdtempSync(join(tmpdir(), "wc-"))
    const story = new Story(controlChapter("day"))
    let env: NodeJS.ProcessEnv = { FAULT: fault, FAULT_FOLDER: home }
    try {
      while (!story.isOver) {
        await life(home, story, env, fault)
        env = {}
      }
      const isStruck = existsSync(join(home, "fired"))
      if (isStruck) struck++
      if (isStruck) expect(readFileSync(join(home, "fired"), "utf8")).toBe(fault.split(":")[0])
      return isStruck
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  }

  async function life(home: string, story: Story<ControlDoor>, env: NodeJS.ProcessEnv, where: string): Promise<void> {
    const isMortal = env["FAULT"] !== undefined
    const door = await ControlDoor.start(home, build.folder, env).catch((failure: unknown) => {
      if (!isMortal || Fault.from(failure).code !== "unavailable") throw failure
      return undefined
    })
    if (!door) return
    try {
      if (!isMortal) readyMs.push(door.readyMs)
      if (!isMortal) expect(await story.settle(door), where).toEqual([])
      const failure = await story.live(door)
      if (failure && !isMortal) throw failure
      if (failure) await door.died()
      else expect(await story.settle(door), where).toEqual([])
    } finally {
      await door[Symbol.asyncDispose]()
    }
  }
})
