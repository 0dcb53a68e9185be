import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { silentLog } from "@warren/base/log.ts"
import { bundleProgram, Program } from "@warren/base/testing/program.ts"
import { programs } from "@warren/drivers/oci/testing/subject.ts"
import { describe, expect, test } from "vitest"
import { Images } from "../images.ts"
import { keeperFor } from "../keeper/open.ts"
import { writeTar } from "../tar/writer.ts"
import { busyboxTree, endlessTar, file } from "../testing/archives.ts"
import { foreign, isRoot, ordinaryUser, own, owned } from "../testing/ordinary-user.ts"

/** Run by `rootless.live.test.ts`, as somebody who is not root. */
describe.skipIf(isRoot)("an ordinary user's images", () => {
  const user = ordinaryUser()

  test("an archive that stops coming is told as it is; one that is not wanted any more stops with the reason", async () => {
    const bytes = writeTar(busyboxTree(...owned))
    const broken = new Fault("unavailable", "the line is dead")
    async function* half(then: () => void): AsyncGenerator<Buffer, void, void> {
      yield await Promise.resolve(bytes.subarray(0, 100_000))
      then()
      yield await Promise.resolve(bytes.subarray(100_000, 200_000))
    }
    const pin = (): void => undefined
    const fails = half(() => {
      throw broken
    })
    await expect(user.images.store.add(fails, { pin })).rejects.toBe(broken)
    const stop = new AbortController()
    const reason = new Error("enough")
    await expect(
      user.images.store.add(
        half(() => stop.abort(reason)),
        { pin, signal: stop.signal },
      ),
    ).rejects.toBe(reason)
    await expect(
      user.images.store.add(
        half(() => undefined),
        { pin, signal: stop.signal },
      ),
    ).rejects.toBe(reason)
    expect(user.drafts()).toEqual([])
  })

  test("a keeper that cannot be run, or is killed, is told; what it left goes with the next open", async () => {
    await user.images[Symbol.asyncDispose]()
    user.images = await user.open(keeperFor(user.driver, user.temp.at("nowhere.mjs")))
    writeFileSync(user.temp.at("tree.tar"), writeTar(busyboxTree(...owned, file("unique", "to this test"))))
    await expect(user.images.import(user.temp.at("tree.tar"), { name: "x" })).rejects.toMatchObject({
      code: "unavailable",
    })
    await user.images[Symbol.asyncDispose]()
    // Half of a layer, as a process leaves it that was killed.
    const [command, ...args] = user.driver.asKeeper?.([
      "sh",
      "-c",
      `mkdir -p -m 700 ${user.temp.at("images/drafts/d-1/layer/root/etc")}; touch ${user.temp.at("images/drafts/d-1/layer/root/etc/x")}`,
    ]) ?? [""]
    mkdirSync(user.temp.at("images/drafts/d-1/layer"), { recursive: true })
    execFileSync(command, args)
    expect(foreign(user.temp.at("images/drafts")).length).toBeGreaterThan(0)
    user.images = await user.open()
    expect(user.drafts()).toEqual([])
    await user.images.import(user.temp.at("tree.tar"), { name: "x" })
    user.images.delete("x")
  })

  /** Resolves when a layer is being made there, and has files of somebody else. */
  async function isBegun(root: string): Promise<void> {
    await expect.poll(() => foreign(join(root, "drafts")).length, { timeout: 30_000 }).toBeGreaterThan(5)
  }
  const keepers = (): number[] => pids().filter((pid) => commandOf(pid).includes(user.program))

  test("a keeper that is killed is told, and leaves nothing", async () => {
    const adding = user.images.store.add(endlessTar(), { pin: () => undefined }).catch((thrown: unknown) => thrown)
    await isBegun(user.temp.at("images"))
    for (const pid of keepers()) process.kill(pid, "SIGKILL")
    expect(await adding).toMatchObject({ code: "unavailable", message: expect.stringContaining("SIGKILL") as string })
    expect(user.drafts()).toEqual([])
    await user.rootfs("tree", ...owned)
  })

  test("a keeper ends with whoever it works for, and half of its layer with the next open", async () => {
    const endless = await bundleProgram(new URL("../testing/endless.ts", import.meta.url), user.temp)
    const root = user.temp.at("killed")
    {
      await using running = new Program(endless, [user.temp.at("other"), JSON.stringify(programs), user.program, root])
      await isBegun(root)
      running.kill()
      await running.ended
    }
    await expect.poll(keepers).toEqual([])
    expect(foreign(join(root, "drafts")).length).toBeGreaterThan(5)
    await using again = await Images.open({ root, log: silentLog, keeper: keeperFor(user.driver, user.program) })
    expect(foreign(root)).toEqual([])
    expect(again.store.catalog.layers()).toEqual([])
  })

  test("without a keeper there is the machine itself, and a word why there is nothing else", async () => {
    await user.images[Symbol.asyncDispose]()
    await using bare = await Images.open({ root: user.temp.at("bare"), log: silentLog })
    user.images = await user.open()
    expect((await bare.use("host", "me")).grafts).toContainEqual({ from: "/usr", to: "/usr" })
    writeFileSync(user.temp.at("tree.tar"), writeTar(busyboxTree()))
    await expect(bare.import(user.temp.at("tree.tar"), { name: "x" })).rejects.toMatchObject({
      code: "unsupported",
      hint: expect.stringContaining("oci") as string,
    })
    expect(readdirSync(user.temp.at("bare/drafts"))).toEqual([])
  })

  test("the keeper has no network, cannot get more rights, and is nobody of importance outside", () => {
    const [command, ...args] = user.driver.asKeeper?.([
      "sh",
      "-c",
      "cat /proc/self/status /proc/self/uid_map; ls /sys/class/net /proc/sys/net/ipv4/conf; cat /etc/shadow",
    ]) ?? [""]
    const said = (() => {
      try {
        return execFileSync(command, args, { stdio: ["ignore", "pipe", "ignore"] }).toString()
      } catch (failure) {
        return String((failure as { stdout: Buffer }).stdout)
      }
    })()
    expect(said).toMatch(/^NoNewPrivs:\t1$/m)
    expect(said).toMatch(/^all\ndefault\nlo$/m)
    expect(said).not.toMatch(/^root:/m)
    expect(said).toMatch(new RegExp(`^ +65536 +${own} +1$`, "m"))
    expect(readFileSync("/proc/self/status", "utf8")).not.toMatch(/^NoNewPrivs:\t1$/m)
    expect(statSync(user.program).uid).toBe(own)
  })
})

function pids(): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0)
}

/** Nothing when it is gone already. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8")
  } catch {
    return ""
  }
}
