import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect, test } from "vitest"
import { launcher } from "./world.ts"

const times = 60
const forkMs = 50
const closeMs = 5_000

test(
  "who is killed while ids are mapped leaves nobody who waits and holds the output",
  { timeout: 60_000 },
  async () => {
    await using folder = await TempFolder.make()
    const program = await launcher(folder.at("bin"))
    const left: string[] = []
    for (let n = 0; n < times; n++) left.push(...(await killedAtItsFork(program)))
    for (const pid of left) process.kill(Number(pid), "SIGKILL")
    expect(left).toEqual([])
  },
)

/** In the moment in which it has a child: before that can have asked to be ended with it. Who is left, if anybody is. */
async function killedAtItsFork(program: string): Promise<string[]> {
  const child = spawn(program, ["--inside", "100000:100000:65536", "/bin/true"])
  child.stdout.resume()
  child.stderr.resume()
  const late = performance.now() + forkMs
  let children: string[] = []
  while (children.length === 0 && performance.now() < late) children = childrenOf(child.pid ?? 0)
  child.kill("SIGKILL")
  const isClosed = once(child, "close", { signal: AbortSignal.timeout(closeMs) }).then(
    () => true,
    () => false,
  )
  return (await isClosed) ? [] : children
}

function childrenOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean)
}
