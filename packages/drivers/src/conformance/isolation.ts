import { describe, expect, it } from "vitest"
import { lackOf } from "../driver.ts"
import { exec } from "../init/exec.ts"
import { defaultLimits } from "../sandbox-spec.ts"
import { sh, text, type World } from "./world.ts"

/** What a sandbox sees and may change of what is not its own. */
export function describeIsolation(world: World): void {
  describe("isolation", () => {
    it("is measured, and is what was asked for", async () => {
      const { driver } = world
      const sandbox = await world.start({
        limits: { ...defaultLimits, cpus: 0.5, memoryBytes: 128 * 1024 * 1024, pidsMax: 64 },
      })
      const posture = await sandbox.posture()
      expect(posture.seccompMode).toBe(2)
      expect(posture.noNewPrivileges).toBe(true)
      if (lackOf(driver, "limits") === undefined) {
        expect(posture.limits).toEqual({ cpus: 0.5, memoryBytes: 128 * 1024 * 1024, pidsMax: 64 })
      }
      if (lackOf(driver, "namespaces") === undefined) {
        expect(Object.values(posture.namespaces).every((namespace) => namespace.isOwn)).toBe(true)
        expect(posture.uidMap[0]?.outside).toBeGreaterThan(65_535)
      }
      // Whoever lacks one of these says so where it is looked for.
      const lacks = (["namespaces", "limits"] as const).filter((usual) => lackOf(driver, usual) !== undefined)
      expect(posture.degraded.length).toBeGreaterThanOrEqual(lacks.length)
    })

    it("shows no secret of the host", async () => {
      const sandbox = await world.start()
      expect(await text(sandbox, "ls /root /home 2>&1; cat /etc/shadow 2>&1")).not.toMatch(/ssh|\$y\$|\$6\$/)
    })

    it("shows no process, mount or network of the host", async ({ skip }) => {
      const { driver } = world
      const lack = lackOf(driver, "namespaces")
      if (lack !== undefined) return skip(lack)
      const sandbox = await world.start()
      expect(await text(sandbox, "ls /proc | grep -c '^[0-9]'; cat /proc/1/comm")).toMatch(/^[34]\n(warren-)?init\n$/)
      expect(await text(sandbox, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '")).toBe("lo\n")
    })

    it("gives no root inside in profile strict", async () => {
      const strict = await world.start({ profile: "strict" })
      await expect(exec(strict, { argv: ["id"], user: "root" })).rejects.toMatchObject({ code: "forbidden" })
      expect((await sh(strict, "sudo id")).code).not.toBe(0)
    })

    it("gives root inside in profile dev", async ({ skip }) => {
      const { driver } = world
      if (!driver.abilities.rootInside) return skip(driver.abilities.reasons["rootInside"])
      const dev = await world.start()
      expect(
        await text(dev, "id -u; touch /usr/local/made && chown 1000 /usr/local/made && stat -c %u /usr/local/made", {
          user: "root",
        }),
      ).toBe("0\n1000\n")
      expect(await text(dev, "sudo id -u; sudo sh -c 'exit 5'; echo $?")).toBe("0\n5\n")
    })

    it("keeps a read-only root read-only, and the workspace writable", async () => {
      const { driver } = world
      const sandbox = await world.start({ isRootReadOnly: true })
      const attempts =
        'for p in / /usr /etc /var /opt; do touch $p/x 2>/dev/null && echo wrote $p; done; touch x "${TMPDIR:-/tmp}/x" && echo fine'
      const user = driver.abilities.rootInside ? "root" : "user"
      expect(await text(sandbox, attempts, { user, cwd: "/workspace" })).toBe("fine\n")
      expect(await text(sandbox, 'touch y "${TMPDIR:-/tmp}/y" ~/y && echo fine', { cwd: "/workspace" })).toBe("fine\n")
    })
  })
}
