import { existsSync, readdirSync } from "node:fs"
import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { Baseline, type Stranger } from "../baseline.ts"
import type { Context } from "../metric.ts"
import { Sandboxes } from "../sandboxes.ts"
import { withWorkbench } from "../workbench.ts"
import { DockerRival } from "./docker.ts"
import { programCalled } from "./dockerd.ts"
import type { Rival } from "./rival.ts"
import { StrangeRival } from "./stranger.ts"
import { WarrenCold } from "./warren.ts"

const home = await mkdtemp(join(tmpdir(), "warren-rivals-test-"))
afterAll(() => rm(home, { recursive: true, force: true }))

const signal = new AbortController().signal
const bench = <T>(work: (context: Context) => Promise<T>): Promise<T> =>
  withWorkbench({ home, peers: home, signal, isQuick: true }, work)
const dockerd = programCalled("dockerd")
const strangers: readonly Stranger[] = ["crun", "runc", "bwrap"]

/** Everything a rival is asked for, in the order it is asked. */
async function useUp(rival: Rival): Promise<void> {
  expect(await rival.cycle()).toBeGreaterThan(0)
  await rival.start()
  await rival.start()
  expect(await rival.exec()).toBeGreaterThan(0)
  expect(await rival.memory()).toBeGreaterThan(100_000)
  await rival.stop()
  expect(await rival.memory()).toBe(0)
  await rival.start()
}

/** Groups of this process's baselines and daemons, in every hierarchy. */
function groupsLeft(): string[] {
  const hierarchies = readdirSync("/sys/fs/cgroup").map((name) => join("/sys/fs/cgroup", name))
  const names = [`warren-bench-${process.pid}`, `warren-bench-docker-${process.pid}`]
  return hierarchies.flatMap((folder) => names.map((name) => join(folder, name))).filter((path) => existsSync(path))
}

describe("what Warren is compared with comes, is measured and leaves nothing, not even one that still sleeps", () => {
  test("warren, crun, runc, bwrap", { timeout: 120_000 }, async () => {
    await bench(async (context) => {
      const sandboxes = await Sandboxes.open(context)
      const baseline = await Baseline.start(context, sandboxes)
      const there = strangers.filter((name) => !StrangeRival.absent(name))
      await useUp(new WarrenCold(sandboxes))
      for (const name of there) await useUp(new StrangeRival(name, baseline))
      if (there.length > 0) expect(groupsLeft()).not.toEqual([])
    })
    expect(groupsLeft()).toEqual([])
    expect(await readdir(home)).toEqual([])
  })

  // Debian's docker.io is not among what this project needs; where somebody has it, it is asked.
  test.skipIf(dockerd === undefined)("docker", { timeout: 60_000 }, async () => {
    await bench(async (context) => {
      const sandboxes = await Sandboxes.open(context)
      await useUp(await DockerRival.start(context, dockerd ?? "", sandboxes.spec()))
    })
    expect(groupsLeft()).toEqual([])
    expect(await readdir(home)).toEqual([])
  })

  test("a daemon that does not start is an error, and leaves nothing", async () => {
    const attempt = bench(async (context) =>
      DockerRival.start(context, "/bin/false", (await Sandboxes.open(context)).spec()),
    )
    await expect(attempt).rejects.toThrow("dockerd did not start")
    expect(await readdir(home)).toEqual([])
  })
})
