import { expect, it } from "vitest"
import type { Sandbox } from "../driver.ts"
import { exec } from "../init/exec.ts"
import { commandLines, longSleep, never, text, type World } from "./world.ts"

/** What outlives the process that made it. */
export function describeAdoption(world: World): void {
  it("finds its sandboxes again after the process that made them is gone", async () => {
    const sandbox = await world.start()
    const sleeping = longSleep()
    await exec(sandbox, { argv: ["sh", "-c", `${sleeping} & echo kept > note`], cwd: "/workspace" })
    await world.reopen()
    const found: Sandbox[] = []
    for await (const one of world.driver.adopt(never)) found.push(one)
    const again = found.find((one) => one.id === sandbox.id)
    if (!again) throw new Error("the sandbox was not adopted")
    expect(await text(again, "cat note", { cwd: "/workspace" })).toBe("kept\n")
    expect(await text(again, commandLines)).toContain(sleeping)
    await world.driver.destroy(again.id)
    await again.ended
  })
}
