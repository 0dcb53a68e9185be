import { readdirSync } from "node:fs"
import { join } from "node:path"
import { newId } from "@warren/base/id.ts"
import { describe, expect, test } from "vitest"
import { canSnapshot, type Driver, type Sandbox, type Snapshotting } from "../driver.ts"
import { exec, Execution } from "../init/exec.ts"
import type { SnapshotId } from "../sandbox-spec.ts"
import { Fixture, whileOthersWork } from "./testing/fixture.ts"

const fixture = new Fixture()
const sh = async (sandbox: Sandbox, command: string, user = "user"): Promise<string> =>
  (await exec(sandbox, { argv: ["sh", "-c", command], user })).stdout.toString()

function able(): Driver & Snapshotting {
  const { driver } = fixture
  if (!canSnapshot(driver)) throw new Error(driver.abilities.reasons["snapshot"])
  return driver
}

async function snapshotOf(sandbox: Sandbox): Promise<SnapshotId> {
  const snapshot = newId("snp")
  await able().snapshot(sandbox.id, snapshot)
  return snapshot
}

describe("snapshots", () => {
  test("of a running sandbox have what it wrote, changed and deleted; then each goes its own way", async () => {
    await using parent = await fixture.use()
    await sh(parent, "echo one > /workspace/a; mkdir -p /workspace/d; echo x > /workspace/d/x")
    await sh(parent, "rm /usr/bin/env; echo changed > /etc/motd; rm -rf /opt; mkdir /opt; chown 1234 /opt", "root")
    const from = await snapshotOf(parent)
    await sh(parent, "echo two > /workspace/a; rm -r /workspace/d")
    const children = await Promise.all(Array.from({ length: 3 }, () => fixture.start({ from })))
    // Nothing stands on it.
    await able().removeSnapshot(from)
    const look = "cat /workspace/a /workspace/d/x /etc/motd; ls /usr/bin/env 2>&1 | grep -c 'No such'; stat -c %u /opt"
    for (const child of children) expect(await sh(child, look)).toBe("one\nx\nchanged\n1\n1234\n")
    await Promise.all(children.map((child, index) => sh(child, `echo child${index} > /workspace/a`)))
    expect(await Promise.all(children.map((child) => sh(child, "cat /workspace/a")))).toEqual([
      "child0\n",
      "child1\n",
      "child2\n",
    ])
    expect(await sh(parent, "cat /workspace/a; ls /workspace")).toBe("two\na\n")
    for (const child of children) await fixture.destroy(child.id)
    await able().removeSnapshot(from)
  })

  test("of snapshots of snapshots are as deep as the first, and outlive what they were taken of", async () => {
    let from: SnapshotId | undefined
    let depth = ""
    for (let generation = 1; generation <= 6; generation++) {
      await using sandbox = await fixture.use(from ? { from } : {})
      await sh(sandbox, `echo ${generation} >> /workspace/log; sudo touch /usr/local/g${generation}`)
      const before = from
      from = await snapshotOf(sandbox)
      if (before) await able().removeSnapshot(before)
      const lowers = await sh(sandbox, "grep -c . /proc/self/mounts; grep -o 'lowerdir=[^,]*' /proc/self/mounts")
      if (generation > 1) expect(lowers).toBe(depth)
      depth = lowers
    }
    await using last = await fixture.use(from ? { from } : {})
    expect(await sh(last, "cat /workspace/log; ls /usr/local | grep -c '^g[0-9]'")).toBe("1\n2\n3\n4\n5\n6\n6\n")
    expect(await able().listSnapshots()).toEqual([from])
    if (from) await able().removeSnapshot(from)
    expect(await able().listSnapshots()).toEqual([])
  })

  test("leave the sandbox the room it had", async () => {
    await using parent = await fixture.use({ limits: { diskBytes: 64 * 1024 * 1024 } })
    await sh(parent, "head -c 40m /dev/urandom > /workspace/big; sync -f /workspace/big")
    const snapshot = await snapshotOf(parent)
    // The same again over the old: what the snapshot holds on to does not count against it.
    expect(
      await sh(
        parent,
        "rm /workspace/big; head -c 40m /dev/urandom > /workspace/big && sync -f /workspace/big && echo fits",
      ),
    ).toBe("fits\n")
    await able().removeSnapshot(snapshot)
  })

  test("give whoever begins with them a limit of their own, and nobody else feels it", async () => {
    const limits = { diskBytes: 64 * 1024 * 1024 }
    await using parent = await fixture.use({ limits })
    await sh(parent, "head -c 40m /dev/urandom > /workspace/big; sync -f /workspace/big")
    const from = await snapshotOf(parent)
    await using child = await fixture.use({ from, limits: { diskBytes: 32 * 1024 * 1024 } })
    await using sibling = await fixture.use({ from, limits })
    await able().removeSnapshot(from)
    // What the snapshot held was paid for by who wrote it.
    const write = (megabytes: number): string =>
      `head -c ${megabytes}m /dev/urandom > /workspace/own 2>/workspace/said && sync -f /workspace/own && echo fits`
    expect(await sh(child, write(20))).toBe("fits\n")
    await whileOthersWork(sibling, async () => {
      expect(await sh(child, write(60))).toBe("")
      expect(await sh(child, "rm /workspace/own; echo room > /workspace/note && cat /workspace/note")).toBe("room\n")
    })
    expect(await sh(sibling, write(40))).toBe("fits\n")
    expect(await sh(parent, "head -c 20m /dev/urandom > /workspace/more && sync -f /workspace/more && echo fits")).toBe(
      "fits\n",
    )
    for (const one of [parent, child, sibling]) expect(await sh(one, "stat -c %s /workspace/big")).toBe("41943040\n")
  })

  test("of a sandbox that is writing are of one moment, and usable", async () => {
    await using parent = await fixture.use()
    // Every file is renamed into place when it is whole and says which it is.
    const write = `const fs = require("fs")
      for (let n = 0; ; n++) {
        fs.writeFileSync("draft", String(n).repeat(10000))
        fs.renameSync("draft", "file-" + (n % 50))
        fs.appendFileSync("log", n + "\\n")
        if (n === 100) console.log("up")
      }`
    await using writer = await Execution.start(parent, { argv: ["node", "-e", write], cwd: "/workspace" })
    await writer.output().next()
    const taken: SnapshotId[] = []
    for (let count = 0; count < 10; count++) taken.push(await snapshotOf(parent))
    let before = -1
    for (const from of taken) {
      await using child = await fixture.use({ from })
      const check = `const fs = require("fs")
        const log = fs.readFileSync("log", "utf8").trim().split("\\n").map(Number)
        if (log.some((n, at) => n !== at)) throw new Error("the log has gaps")
        const last = log.length - 1
        for (const name of fs.readdirSync(".").filter((one) => one.startsWith("file-"))) {
          const number = Number(name.slice(5)), newest = last - ((last - number) % 50 + 50) % 50
          const isOf = (k) => fs.readFileSync(name, "utf8") === String(k).repeat(10000)
          if (!isOf(newest) && !isOf(newest + 50)) throw new Error(name + " is not of that moment")
        }
        console.log(last)`
      const { stdout, stderr, code } = await exec(child, { argv: ["node", "-e", check], cwd: "/workspace" })
      expect(stderr.toString()).toBe("")
      expect(code).toBe(0)
      // They were taken one after the other.
      expect(Number(stdout.toString())).toBeGreaterThanOrEqual(before)
      before = Number(stdout.toString())
      await able().removeSnapshot(from)
    }
  })

  test("of a large sandbox are exact in twenty forks at once, and each is its own", { timeout: 180_000 }, async () => {
    await using parent = await fixture.use()
    const megabytes = Number(process.env["WARREN_FORK_MB"] ?? 100)
    await sh(parent, `cd /workspace; head -c ${megabytes}M /dev/urandom > data; sha256sum /workspace/data > sum`)
    const from = await snapshotOf(parent)
    const children = await Promise.all(Array.from({ length: 20 }, () => fixture.start({ from })))
    await able().removeSnapshot(from)
    for (const [index, child] of children.entries()) {
      expect(await sh(child, "cd /workspace; sha256sum -c sum")).toBe("/workspace/data: OK\n")
      await sh(child, `printf ${index} | dd of=/workspace/data conv=notrunc status=none; rm /workspace/sum`)
    }
    for (const [index, child] of children.entries()) {
      expect(await sh(child, "head -c 1 /workspace/data; ls /workspace")).toMatch(
        new RegExp(`^${String(index)[0]}data\n`),
      )
    }
    expect(await sh(parent, "sha256sum -c /workspace/sum")).toBe("/workspace/data: OK\n")
    await Promise.all(children.map(({ id }) => fixture.destroy(id)))
  })

  test("can be taken away while others begin with them", async () => {
    await using parent = await fixture.use()
    await sh(parent, "echo mine > /workspace/a")
    const from = await snapshotOf(parent)
    const begun = Array.from({ length: 8 }, () => fixture.start({ from }))
    const outcomes = await Promise.allSettled([...begun, able().removeSnapshot(from)])
    for (const outcome of outcomes) {
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "not_found" })
      else if (outcome.value) {
        expect(await sh(outcome.value, "cat /workspace/a")).toBe("mine\n")
        await fixture.destroy(outcome.value.id)
      }
    }
    expect(await able().listSnapshots()).toEqual([])
  })

  test("of what is not there are refused, and leave nothing", async () => {
    await expect(able().snapshot(newId("sbx"), newId("snp"))).rejects.toMatchObject({ code: "not_found" })
    const id = await fixture.create()
    await expect(able().snapshot(id, "snp_../../x" as never)).rejects.toMatchObject({ code: "invalid" })
    await fixture.leavesNothing(async () => {
      await expect(fixture.create({ from: newId("snp") })).rejects.toMatchObject({ code: "not_found" })
      await expect(fixture.create({ from: "../host-image" as never })).rejects.toMatchObject({ code: "invalid" })
    })
    const from = newId("snp")
    await able().snapshot(id, from)
    await expect(able().snapshot(id, from)).rejects.toMatchObject({ code: "conflict" })
    await expect(fixture.create({ from, image: { layers: fixture.image.layers } })).rejects.toMatchObject({
      code: "invalid",
    })
    await able().removeSnapshot(from)
    expect(readdirSync(join(fixture.root, "volume")).filter((name) => name.startsWith("snp_"))).toEqual([])
  })
})
