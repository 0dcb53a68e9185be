import { newId } from "@warren/base/id.ts"
import { describe, expect, test } from "vitest"
import { canSnapshot, type Driver, type Sandbox, type Snapshotting } from "../driver.ts"
import { exec } from "../init/exec.ts"
import type { Image } from "../sandbox-spec.ts"
import { Fixture } from "./testing/fixture.ts"

const fixture = new Fixture()
const sh = async (sandbox: Sandbox, command: string, user = "user"): Promise<string> =>
  (await exec(sandbox, { argv: ["sh", "-c", command], user })).stdout.toString()

function able(): Driver & Snapshotting {
  const { driver } = fixture
  if (!canSnapshot(driver)) throw new Error(driver.abilities.reasons["snapshot"])
  return driver
}

describe("snapshots", () => {
  test("of a running sandbox have what it wrote, changed and deleted; then each goes its own way", async () => {
    await using parent = await fixture.use()
    await sh(parent, "echo one > /workspace/a; mkdir -p /workspace/d; echo x > /workspace/d/x")
    await sh(parent, "rm /usr/bin/env; echo changed > /etc/motd; rm -rf /opt; mkdir /opt; chown 1234 /opt", "root")
    const snapshot = newId("snp")
    const image = await able().snapshot(parent.id, snapshot)
    await sh(parent, "echo two > /workspace/a; rm -r /workspace/d")
    const children = await Promise.all(Array.from({ length: 3 }, () => fixture.start({ image })))
    const look = "cat /workspace/a /workspace/d/x /etc/motd; ls /usr/bin/env 2>&1 | grep -c 'No such'; stat -c %u /opt"
    for (const child of children) expect(await sh(child, look)).toBe("one\nx\nchanged\n1\n1234\n")
    await Promise.all(children.map((child, index) => sh(child, `echo child${index} > /workspace/a`)))
    expect(await Promise.all(children.map((child) => sh(child, "cat /workspace/a")))).toEqual([
      "child0\n",
      "child1\n",
      "child2\n",
    ])
    expect(await sh(parent, "cat /workspace/a; ls /workspace")).toBe("two\na\n")
    await expect(able().removeSnapshot(snapshot)).rejects.toMatchObject({ code: "conflict" })
    for (const child of children) await fixture.destroy(child.id)
    await able().removeSnapshot(snapshot)
    await able().removeSnapshot(snapshot)
  })

  test("stand on snapshots, and outlive what they were taken of", async () => {
    const taken: ReturnType<typeof newId<"snp">>[] = []
    let image: Image = fixture.image
    for (let generation = 1; generation <= 5; generation++) {
      const sandbox = await fixture.start({ image })
      await sh(sandbox, `echo ${generation} >> /workspace/log; sudo touch /usr/local/g${generation}`)
      const snapshot = newId("snp")
      image = await able().snapshot(sandbox.id, snapshot)
      taken.push(snapshot)
      await fixture.destroy(sandbox.id)
    }
    {
      await using last = await fixture.use({ image })
      expect(await sh(last, "cat /workspace/log; ls /usr/local | grep -c '^g[0-9]'")).toBe("1\n2\n3\n4\n5\n5\n")
    }
    for (const snapshot of taken) await able().removeSnapshot(snapshot)
  })

  test("leave the sandbox the room it had", async () => {
    await using parent = await fixture.use({ limits: { diskBytes: 64 * 1024 * 1024 } })
    await sh(parent, "head -c 40m /dev/urandom > /workspace/big; sync -f /workspace/big")
    const snapshot = newId("snp")
    await able().snapshot(parent.id, snapshot)
    // The same again over the old: what the snapshot holds on to does not count against it.
    expect(
      await sh(
        parent,
        "rm /workspace/big; head -c 40m /dev/urandom > /workspace/big && sync -f /workspace/big && echo fits",
      ),
    ).toBe("fits\n")
    await able().removeSnapshot(snapshot)
  })

  test("of what is not there are refused", async () => {
    await expect(able().snapshot(newId("sbx"), newId("snp"))).rejects.toMatchObject({ code: "not_found" })
    const id = await fixture.create()
    await expect(able().snapshot(id, "snp_../../x" as never)).rejects.toMatchObject({ code: "invalid" })
  })
})
