import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, openSync, readFileSync, rmSync, closeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "@warren/base/testing/free-port.ts"
import { tokenFileOf } from "@warren/protocol/places.ts"
import { describe, expect, it } from "vitest"
import { dist } from "../runner/home.ts"
import { SmallDisk } from "./small-disk.ts"

describe.skipIf(process.getuid?.() !== 0)("a control plane whose log is on a disk that is full", () => {
  it("goes on without it, and writes it again when there is room", { timeout: 60_000 }, async () => {
    using disk = new SmallDisk(1)
    const home = mkdtempSync(join(tmpdir(), "wc-"))
    const file = join(disk.folder, "warren.log")
    const log = openSync(file, "a")
    disk.fill(0)
    const port = await freePort()
    const env = { ...process.env, WARREN_HOME: home, WARREN_PORT: String(port) }
    const child = spawn(process.execPath, [`${dist}/control.js`], { env, stdio: ["ignore", log, "inherit"] })
    const ended = once(child, "exit")
    const isOver = { value: false }
    void ended.then(() => (isOver.value = true))
    const ask = async (): Promise<number | undefined> => {
      if (isOver.value) throw new Error("the control plane ended")
      const headers = { authorization: `Bearer ${readFileSync(tokenFileOf(home), "utf8").trim()}` }
      return (await fetch(`http://127.0.0.1:${port}/v1/tokens`, { headers })).status
    }
    try {
      await expect.poll(() => ask().catch(() => isOver.value), { timeout: 30_000 }).not.toBe(false)
      expect(await ask()).toBe(200)
      expect(readFileSync(file, "utf8")).toBe("")
      disk.empty()
      child.kill("SIGTERM")
      await ended
      expect(readFileSync(file, "utf8")).toContain("control.stopping")
    } finally {
      child.kill("SIGKILL")
      await ended
      closeSync(log)
      rmSync(home, { recursive: true, force: true })
    }
  })
})
