import { once } from "node:events"
import { describe, expect, it } from "vitest"
import { lackOf } from "../driver.ts"
import { Execution } from "../init/exec.ts"
import { Operation } from "../init/operation.ts"
import { Shell } from "../init/shell.ts"
import type { World } from "./world.ts"

/** What stays open between two requests. */
export function describeShellsAndPorts(world: World): void {
  describe("shells and ports", () => {
    it("keep their state between commands", async () => {
      const shell = await Shell.open(await world.start())
      await shell.run("cd /tmp; export A=1; f() { echo f$A; }")
      expect((await shell.run("pwd; f")).output.toString()).toBe("/tmp\nf1\n")
      expect(await shell.run("exit 3")).toMatchObject({ code: 3, restarted: true })
      expect((await shell.run("echo next")).output.toString()).toBe("next\n")
    })

    it("are reached by connecting inside", async ({ skip }) => {
      const { driver } = world
      const lack = lackOf(driver, "ports")
      if (lack !== undefined) return skip(lack)
      const sandbox = await world.start()
      const program = "require('net').createServer(s=>s.end('hi '+s.remoteAddress)).listen(8080,()=>console.log('up'))"
      await using server = await Execution.start(sandbox, { argv: ["node", "-e", program] })
      await server.output().next()
      const stream = await sandbox.connect()
      const operation = Operation.request({ op: "connect", port: 8080 })
      stream.write(operation)
      let received = ""
      stream.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")))
      await once(stream, "end")
      stream.destroy()
      expect(received).toMatch(/hi .*127\.0\.0\.1$/)
    })
  })
}
