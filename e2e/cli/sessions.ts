import { expect, test } from "vitest"
import type { CliWorld } from "./world.ts"

/** A session's life, from its first state to its last. */
export function sessions(world: CliWorld): void {
  const { said, session } = world

  test("freeze, sleep, wake, fork and go back", async () => {
    await using _ = await session("life")
    await said("exec", "life", "--", "sh", "-c", "echo one > /tmp/../home/user/file")
    const snapshot = (await said("snapshot", "life")).trim()
    expect(await said("pause", "life")).toBe("life is paused.\n")
    expect(await said("resume", "life")).toBe("life is running.\n")
    await said("exec", "life", "--", "sh", "-c", "echo two > ~/file")
    expect(await said("hibernate", "life")).toBe("life is hibernated.\n")
    expect(await said("exec", "life", "--", "sh", "-c", "cat ~/file")).toBe("two\n")
    const forks = (await said("fork", "life", "2")).trim().split("\n")
    expect(forks).toHaveLength(2)
    expect(await said("rollback", "life", snapshot)).toBe("life is running.\n")
    expect(await said("exec", "life", "--", "sh", "-c", "cat ~/file")).toBe("one\n")
    expect(await said("exec", forks[0] ?? "", "--", "sh", "-c", "cat ~/file")).toBe("two\n")
    expect(await said("stop", "life")).toBe("life is stopped.\n")
    expect((await world.cli.run(["exec", "life", "true"])).code).toBe(4)
    expect(await said("restore", "life")).toBe("life is running.\n")
    await said("rm", ...forks)
    await said("snapshots", "rm", snapshot)
  })

  test("are shown with what they use and what runs in them", async () => {
    await using _ = await session("seen")
    await said("exec", "seen", "--", "sh", "-c", "sleep 300 > /dev/null 2>&1 &")
    const [stats] = JSON.parse(await said("stats", "--once", "--json")) as { session: string; memoryBytes: number }[]
    expect(stats).toMatchObject({ session: "seen", memoryBytes: expect.any(Number) as number })
    expect(JSON.parse(await said("ls", "--json"))).toMatchObject([{ name: "seen", state: "running" }])
    expect(await said("_complete", "--", "exec", "se")).toBe("seen\n")
  })

  test("go on while Warren is restarted", async () => {
    await using other = await world.installed.home()
    await other.cli.run(["start", "--daemon"])
    await other.cli.run(["create", "--name", "survivor"])
    const left = ["exec", "survivor", "--", "sh", "-c", "sleep 600 > /dev/null 2>&1 & echo $!"]
    const { stdout: pid } = await other.cli.run(left)
    expect(await other.cli.run(["restart"])).toMatchObject({ code: 0 })
    const look = ["exec", "survivor", "--", "kill", "-0", pid.trim()]
    expect(await other.cli.run(look)).toMatchObject({ code: 0, stderr: "" })
    expect(JSON.parse((await other.cli.run(["status", "--json"])).stdout)).toMatchObject({
      isDaemon: true,
      runner: { found: { adopted: 1 } },
    })
  })
}
