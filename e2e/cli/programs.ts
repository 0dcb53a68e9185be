import { createHash, randomBytes } from "node:crypto"
import { expect, test } from "vitest"
import type { CliWorld } from "./world.ts"

/** Programs that run in a session as if they ran here. */
export function programs(world: CliWorld): void {
  const { said, session } = world

  test("runs a command in a session of its own and takes it away", async () => {
    expect(await said("run", "--", "sh", "-c", "echo $((6*7))")).toBe("42\n")
    expect(await said("ls", "-q")).toBe("")
  })

  test("exit codes, signals and both outputs are as with a local command", async () => {
    const { code, stdout, stderr } = await world.cli.run(["run", "sh", "-c", "echo out; echo err >&2; exit 7"])
    expect({ code, stdout, stderr }).toEqual({ code: 7, stdout: "out\n", stderr: "err\n" })
    expect((await world.cli.run(["run", "sh", "-c", "kill -SEGV $$"])).code).toBe(139)
    expect(await world.cli.run(["run", "no-such-program"])).toMatchObject({
      ...{ code: 127, stderr: "warren: no-such-program: No such file or directory\n" },
    })
    expect((await world.cli.run(["run", "/etc/hostname"])).code).toBe(126)
    expect((await world.cli.run(["run", "--cwd", "/no/such", "true"])).code).toBe(3)
    expect((await world.cli.run(["run", "--timeout", "300ms", "sleep", "60"])).code).toBe(124)
  })

  test("bytes go in and out unchanged", async () => {
    const bytes = randomBytes(5 * 1024 * 1024)
    await using running = world.cli.start("run", "cat")
    running.child.stdin?.end(bytes)
    expect((await running.ended).code).toBe(0)
    expect(sha(running.bytes)).toBe(sha(bytes))
  })

  test("Ctrl-C reaches the program; the session goes, too", async () => {
    await using running = world.cli.start(
      "run",
      "--",
      "sh",
      "-c",
      "trap 'echo caught; exit 5' INT; echo ready; sleep 60 & wait",
    )
    await running.until("ready")
    running.child.kill("SIGINT")
    expect(await running.ended).toMatchObject({ code: 5, stdout: "ready\ncaught\n" })
    expect(await said("ls", "-q")).toBe("")
  })

  test("a program that needs more memory than it may have is explained", async () => {
    const hungry = "exec perl -e '$x = \"a\" x (200*1024*1024); print length $x'"
    const { code, stderr } = await world.cli.run(["run", "--memory", "64m", "sh", "-c", hungry])
    expect(code).toBe(137)
    expect(stderr).toMatch(/no more memory/)
  })

  test("flags become what the session is", async () => {
    const flags = [
      "--net",
      "none",
      "--memory",
      "100m",
      "--cpus",
      "0.5",
      "-e",
      "A=b c",
      "--label",
      "x=y",
      "--name",
      "shaped",
    ]
    await using _ = await session("shaped", ...flags.slice(0, -2))
    expect(JSON.parse(await said("inspect", "shaped", "--json"))).toMatchObject({
      network: { mode: "none" },
      limits: { memoryBytes: 100 * 2 ** 20, cpus: 0.5 },
      labels: { x: "y" },
      env: ["A"],
    })
    expect(await said("exec", "shaped", "--", "sh", "-c", "echo $A")).toBe("b c\n")
  })
}

function sha(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex")
}
