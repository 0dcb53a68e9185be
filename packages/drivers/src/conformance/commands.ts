import { beforeAll, describe, expect, it } from "vitest"
import { lackOf, type Sandbox } from "../driver.ts"
import { exec, Execution } from "../init/exec.ts"
import { commandLines, longSleep, sh, text, type World } from "./world.ts"

/** What runs in a sandbox: as whom, with what, and how it ends. */
export function describeCommands(world: World): void {
  describe("commands", () => {
    let sandbox: Sandbox
    beforeAll(async () => {
      sandbox = await world.start()
    })

    it("run as an ordinary user without any capability", async () => {
      const { driver } = world
      const ids = await text(sandbox, "id -u; id -g; pwd", { cwd: "/workspace" })
      if (lackOf(driver, "namespaces") === undefined) expect(ids).toBe("1000\n1000\n/workspace\n")
      else expect(ids).toMatch(/^[1-9]\d*\n[1-9]\d*\n\/.+\/workspace\n$/)
      const sets = ["CapInh", "CapPrm", "CapEff", "CapAmb", ...(lackOf(driver, "boundingSet") ? [] : ["CapBnd"])]
      const status = await text(sandbox, "cat /proc/self/status")
      for (const set of sets) expect(status).toContain(`\n${set}:\t0000000000000000\n`)
      expect(status).toContain("\nNoNewPrivs:\t1\n")
      expect(status).toContain("\nSeccomp:\t2\n")
    })

    it("see only their own environment", async () => {
      const { driver } = world
      const env = await exec(sandbox, { argv: ["env"], env: { SECRET: "s3cret", PATH: "/usr/bin:/bin" } })
      const names = env.stdout
        .toString()
        .trim()
        .split("\n")
        .map((line) => line.split("=")[0])
      // A driver whose paths are the host's says where its folders are.
      const places = lackOf(driver, "namespaces") === undefined ? [] : ["TMPDIR", "WORKSPACE"]
      expect(new Set(names)).toEqual(
        new Set(["HOME", "LOGNAME", "PATH", "SECRET", "SHELL", "USER", "WARREN_OP", ...places]),
      )
      expect(await text(sandbox, "cat /proc/1/environ 2>/dev/null | wc -c")).toBe("0\n")
    })

    it("take input and signals", async () => {
      await using cat = await Execution.start(sandbox, { argv: ["cat"], stdin: true })
      await cat.write(Buffer.from("hello"))
      expect((await cat.output().next()).value?.bytes.toString()).toBe("hello")
      cat.control({ op: "signal", name: "SIGTERM" })
      expect(await cat.ended()).toMatchObject({ code: null, signal: "SIGTERM", reason: "signal" })
    })

    it("have a terminal when asked for", async ({ skip }) => {
      const { driver } = world
      const lack = lackOf(driver, "terminals")
      if (lack !== undefined) return skip(lack)
      const result = await exec(sandbox, { argv: ["sh", "-c", "tty; stty size"], pty: { cols: 91, rows: 17 } })
      const name = lackOf(driver, "namespaces") === undefined ? "0" : "\\d+"
      expect(result.stdout.toString()).toMatch(new RegExp(`^/dev/pts/${name}\\r\\n17 91\\r\\n$`))
    })

    it("end at their timeout, with all they started", async () => {
      const sleeping = longSleep()
      const result = await sh(sandbox, `setsid ${sleeping}1 & (${sleeping}2 &) ; ${sleeping}3`, { timeoutMs: 200 })
      expect(result.reason).toBe("timeout")
      expect(await text(sandbox, commandLines)).not.toContain(sleeping)
    })

    it("end when the caller goes away", async () => {
      const sleeping = longSleep()
      const running = await Execution.start(sandbox, { argv: ["sh", "-c", `echo up; exec ${sleeping}`] })
      await running.output().next()
      await running[Symbol.asyncDispose]()
      // init reaps before it answers the next operation, or a little later: asked until it is so.
      await expect.poll(() => text(sandbox, commandLines)).not.toContain(sleeping)
    })

    it("that cannot start say why", async () => {
      const missing = (name: string) => ({ code: "not_found", message: `${name}: No such file or directory` })
      await expect(exec(sandbox, { argv: ["no-such-program"] })).rejects.toMatchObject(missing("no-such-program"))
      await expect(exec(sandbox, { argv: ["/etc/passwd"] })).rejects.toMatchObject({ code: "invalid" })
      await expect(exec(sandbox, { argv: ["true"], user: "nobody-here" })).rejects.toMatchObject({ code: "invalid" })
      await expect(exec(sandbox, { argv: ["true"], cwd: "/no/such" })).rejects.toMatchObject(missing("/no/such"))
    })

    it("stop at the output they may make", async () => {
      const result = await exec(sandbox, { argv: ["sh", "-c", "yes"], outputBytesMax: 100_000 })
      expect(result).toMatchObject({ reason: "limit", truncated: true })
      expect(result.stdout.length).toBe(100_000)
    })
  })
}
