import { readFileSync } from "node:fs"
import { freemem } from "node:os"
import { keptBytes } from "@warren/base/testing/kept-bytes.ts"
import { InitUsage } from "@warren/protocol/init.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Sandbox } from "../driver.ts"
import { ask } from "../init/ask.ts"
import { exec, Execution } from "../init/exec.ts"
import { Files, readAll } from "../init/files.ts"
import type { Limits } from "../sandbox-spec.ts"
import { Fixture, sh, text, whileOthersWork } from "./testing/fixture.ts"
import { initPid, pidsIn } from "./testing/invariants.ts"
import { hold, Nasty, nasty, parse } from "./testing/nasty.ts"

const mebibyte = 2 ** 20
/** 10 GB with `WARREN_FLOOD_MB=10000`. */
const floodBytes = Number(process.env["WARREN_FLOOD_MB"] ?? 1_000) * 1_000_000

/** What programs do to a sandbox from inside. The limit holds, the report says why, and a neighbour never notices. */
describe("abuse", () => {
  const fixture = new Fixture()
  let programs: Nasty
  let neighbour: Sandbox

  beforeAll(async () => {
    programs = await Nasty.build()
    neighbour = await fixture.start()
  })
  afterAll(() => programs[Symbol.asyncDispose]())

  const victim = (limits: Partial<Limits> = {}) => fixture.use({ mounts: [programs.mount], limits })
  const alive = async (sandbox: Sandbox): Promise<void> => expect(await text(sandbox, "echo alive")).toBe("alive\n")
  /** For moments when the sandbox is still being cleared: then `limit` is the honest answer. */
  const aliveSoon = async (sandbox: Sandbox): Promise<void> => {
    const answer = () => text(sandbox, "echo alive").catch((fault: { code?: string }) => fault.code)
    await expect.poll(answer, { timeout: 20_000 }).toBe("alive\n")
  }
  const usage = (sandbox: Sandbox) => ask(sandbox, { op: "usage" }, InitUsage)
  const status = (pid: number, field: string): number =>
    Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1])

  describe("of processes", () => {
    it("holds a fork bomb, ends it at its timeout, and works again", async () => {
      await using sandbox = await victim({ pidsMax: 128 })
      await whileOthersWork(neighbour, async () => {
        const bomb = nasty(sandbox, ["fork-bomb"], { timeoutMs: 3_000 })
        await expect.poll(async () => (await sandbox.stats()).pids, { timeout: 10_000 }).toBeGreaterThan(120)
        expect((await bomb).reason).toBe("timeout")
      })
      const stats = await sandbox.stats()
      expect(stats.pidsRefused).toBeGreaterThan(0)
      await aliveSoon(sandbox)
      await expect.poll(() => pidsIn(fixture.root, sandbox.id).length).toBe(1)
    })

    it("stops a sandbox with a fork bomb in it", async () => {
      await using sandbox = await victim({ pidsMax: 128 })
      await using _ = await Execution.start(sandbox, { argv: ["/opt/nasty", "fork-bomb"] })
      await expect.poll(async () => (await sandbox.stats()).pids, { timeout: 10_000 }).toBeGreaterThan(120)
      await whileOthersWork(neighbour, () => fixture.driver.stop(sandbox.id, 100))
      await sandbox.ended
      expect(pidsIn(fixture.root, sandbox.id)).toEqual([])
    })

    it("says `limit` when there is no room for a process, and works again when there is", async () => {
      await using sandbox = await victim({ pidsMax: 64 })
      {
        await using full = await hold(sandbox, ["pids"])
        expect(full).toMatchObject({ errno: "EAGAIN" })
        expect(full.number).toBeGreaterThan(50)
        await whileOthersWork(neighbour, async () => {
          for (let round = 0; round < 20; round++) {
            await expect(exec(sandbox, { argv: ["true"] })).rejects.toMatchObject({ code: "limit" })
          }
        })
        // What needs no process of its own still works.
        expect((await usage(sandbox)).processes).toBeGreaterThan(0)
        expect((await sandbox.stats()).pidsRefused).toBeGreaterThan(0)
      }
      await aliveSoon(sandbox)
    })

    it("buries 10,000 orphans", async () => {
      await using sandbox = await victim()
      const before = (await usage(sandbox)).zombiesReaped
      await whileOthersWork(neighbour, async () => {
        const result = await nasty(sandbox, ["orphans", "10000"], { timeoutMs: 50_000 })
        expect(parse(result.stdout)).toEqual([{ name: "orphans", number: 10_000, errno: "0" }])
      })
      await expect.poll(async () => (await usage(sandbox)).zombiesReaped - before).toBeGreaterThanOrEqual(10_000)
      await expect.poll(() => pidsIn(fixture.root, sandbox.id).length).toBe(1)
      await alive(sandbox)
    })

    it("bears 10,000 zombies at once, and buries them with their parent", async () => {
      await using sandbox = await victim({ pidsMax: 11_000, memoryBytes: 1024 * mebibyte })
      {
        await using dead = await hold(sandbox, ["zombies", "10000"])
        expect(dead).toMatchObject({ number: 10_000, errno: "0" })
        await whileOthersWork(neighbour, () => alive(sandbox))
        dead.execution.control({ op: "signal", name: "SIGKILL" })
        expect(await dead.execution.ended()).toMatchObject({ reason: "signal", signal: "SIGKILL" })
      }
      await expect.poll(async () => (await sandbox.stats()).pids, { timeout: 20_000 }).toBe(1)
      await alive(sandbox)
    })

    it("ends what ignores every signal", async () => {
      await using sandbox = await victim()
      const result = await nasty(sandbox, ["stubborn"], { timeoutMs: 200, graceMs: 100 })
      expect(result).toMatchObject({ reason: "timeout", signal: "SIGKILL" })
      await using _ = await hold(sandbox, ["stubborn"])
      await whileOthersWork(neighbour, () => fixture.driver.stop(sandbox.id, 50))
      await sandbox.ended
      expect(pidsIn(fixture.root, sandbox.id)).toEqual([])
    })

    it("ends what left its group and session, at the latest with the sandbox", async () => {
      await using sandbox = await victim()
      expect(await nasty(sandbox, ["escape"])).toMatchObject({ code: 0, reason: "exit" })
      await expect.poll(() => text(sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).toContain("escaped")
      expect(pidsIn(fixture.root, sandbox.id).length).toBe(2)
      await fixture.driver.stop(sandbox.id, 100)
      await sandbox.ended
      expect(pidsIn(fixture.root, sandbox.id)).toEqual([])
    })

    it("ends at a timeout what forked twice and took a session of its own", async () => {
      await using sandbox = await victim()
      const daemon = "setsid sh -c 'setsid sleep 4000 & setsid sleep 4001 & exit' & sleep 4002"
      expect(await sh(sandbox, daemon, { timeoutMs: 300 })).toMatchObject({ reason: "timeout" })
      expect(await text(sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).not.toContain("sleep 400")
    })

    it("reports one that closed all its descriptors", async () => {
      await using sandbox = await victim()
      const result = await nasty(sandbox, ["close"])
      expect(result).toMatchObject({ code: 7, reason: "exit" })
      expect(result.stdout.toString()).toBe("closing 0 0\n")
    })
  })

  describe("of memory", () => {
    it("ends a memory bomb, says `oom`, and spares init", async () => {
      await using sandbox = await victim({ memoryBytes: 64 * mebibyte })
      const pid = initPid(fixture.root, sandbox.id)
      await whileOthersWork(neighbour, async () => {
        expect(await nasty(sandbox, ["memory"])).toMatchObject({ reason: "oom" })
        // Behind a shell, which only knows a number.
        expect(await sh(sandbox, "/opt/nasty memory; exit $?")).toMatchObject({ reason: "oom" })
      })
      const stats = await sandbox.stats()
      expect(stats.oomKills).toBeGreaterThanOrEqual(2)
      expect(stats.memoryPeakBytes).toBeLessThanOrEqual(64 * mebibyte)
      expect(initPid(fixture.root, sandbox.id)).toBe(pid)
      await alive(sandbox)
    })

    it("ends many memory bombs at once", async () => {
      await using sandbox = await victim({ memoryBytes: 64 * mebibyte })
      await whileOthersWork(neighbour, async () => {
        const bombs = await Promise.all(Array.from({ length: 8 }, () => nasty(sandbox, ["memory"])))
        for (const bomb of bombs) expect(bomb.reason).toBe("oom")
      })
      await alive(sandbox)
    })

    it("lets no command make itself less of a target than init", async () => {
      await using sandbox = await victim()
      const least =
        "for v in -1000 -500 -1 0 1 50 100; do echo $v > /proc/self/oom_score_adj && break; done 2>/dev/null; cat /proc/self/oom_score_adj"
      const init = Number(readFileSync(`/proc/${initPid(fixture.root, sandbox.id)}/oom_score_adj`, "utf8"))
      expect(init).toBeLessThanOrEqual(Number(await text(sandbox, least)))
      expect(Number(await text(sandbox, "cat /proc/self/oom_score_adj"))).toBe(500)
    })

    it.each(["/tmp/full", "/dev/shm/full"])("says ENOSPC when %s is full, and init lives", async (path) => {
      await using sandbox = await victim({ memoryBytes: 64 * mebibyte })
      const pid = initPid(fixture.root, sandbox.id)
      await whileOthersWork(neighbour, async () => {
        const [filled] = parse((await nasty(sandbox, ["fill", path])).stdout)
        expect(filled).toMatchObject({ errno: "ENOSPC" })
        expect(filled?.number).toBeLessThanOrEqual(32 * mebibyte)
      })
      expect((await sandbox.stats()).oomKills).toBe(0)
      await alive(sandbox)
      await sh(sandbox, `rm ${path}`)
      const folder = path.slice(0, path.lastIndexOf("/"))
      expect(parse((await nasty(sandbox, ["inodes", folder])).stdout)[0]).toMatchObject({ errno: "ENOSPC" })
      expect(initPid(fixture.root, sandbox.id)).toBe(pid)
      await alive(sandbox)
    })

    it("bears both of them full, and a memory bomb on top", async () => {
      await using sandbox = await victim({ memoryBytes: 64 * mebibyte })
      for (const path of ["/tmp/full", "/dev/shm/full"]) await nasty(sandbox, ["fill", path])
      expect(await nasty(sandbox, ["memory"])).toMatchObject({ reason: "oom" })
      await alive(sandbox)
    })
  })

  describe("of the disk", () => {
    it("stops at the limit, and others go on writing", async ({ skip }) => {
      if (!fixture.driver.abilities.diskLimit) return skip(fixture.driver.abilities.reasons["diskLimit"])
      await using sandbox = await victim({ diskBytes: 64 * mebibyte })
      await whileOthersWork(neighbour, async () => {
        const [filled] = parse((await nasty(sandbox, ["fill", "/workspace/full"])).stdout)
        expect(["ENOSPC", "EDQUOT"]).toContain(filled?.errno)
        expect(filled?.number).toBeGreaterThan(32 * mebibyte)
        expect(filled?.number).toBeLessThanOrEqual(64 * mebibyte)
        // Everywhere it can write is the same layer.
        const [again] = parse((await nasty(sandbox, ["fill", "/home/user/full"])).stdout)
        expect(["ENOSPC", "EDQUOT"]).toContain(again?.errno)
        expect(again?.number).toBeLessThan(8 * mebibyte)
      })
      await alive(sandbox)
      expect(
        await text(
          sandbox,
          "rm -f /workspace/full /home/user/full && echo again > /workspace/again && cat /workspace/again",
        ),
      ).toBe("again\n")
    })

    it("stops at the limit when init writes, with a typed fault, and leaves no half file", async ({ skip }) => {
      if (!fixture.driver.abilities.diskLimit) return skip(fixture.driver.abilities.reasons["diskLimit"])
      await using sandbox = await victim({ diskBytes: 32 * mebibyte })
      const files = new Files(sandbox)
      await expect(files.write("/workspace/large", Buffer.alloc(64 * mebibyte, 1))).rejects.toMatchObject({
        code: "limit",
      })
      expect((await files.list("/workspace")).entries).toEqual([])
    })
  })

  describe("of output", () => {
    it(`moves ${floodBytes / 1e9} GB through a slow reader in bounded memory`, { timeout: 600_000 }, async () => {
      await using sandbox = await victim()
      const pid = initPid(fixture.root, sandbox.id)
      await using flood = await Execution.start(sandbox, { argv: ["head", "-c", String(floodBytes), "/dev/zero"] })
      const before = keptBytes()
      let bytes = 0
      let chunks = 0
      let keptMax = 0
      await whileOthersWork(neighbour, async () => {
        for await (const output of flood.output()) {
          bytes += output.bytes.length
          if (++chunks % 500 === 0) {
            keptMax = Math.max(keptMax, keptBytes() - before)
            await new Promise((resolve) => setTimeout(resolve, 5))
          }
        }
      })
      expect(bytes).toBe(floodBytes)
      expect(await flood.ended()).toMatchObject({ code: 0, reason: "exit", outputBytes: floodBytes })
      expect(keptMax).toBeLessThan(64 * mebibyte)
      expect(status(pid, "VmHWM") * 1024).toBeLessThan(8 * mebibyte)
    })

    it("holds back a process whose reader stopped, and nothing else", async () => {
      await using sandbox = await victim()
      await using flood = await Execution.start(sandbox, { argv: ["yes"] })
      await flood.output().next()
      // From inside: an ordinary user may not look at it from here.
      const look = 'for p in /proc/[0-9]*; do [ "$(cat $p/comm)" = yes ] && cat $p/io; done'
      const written = async (): Promise<number> => Number(/wchar: (\d+)/.exec(await text(sandbox, look))?.[1])
      let last = -1
      await expect
        .poll(
          async () => {
            const now = await written()
            const isStill = now === last
            last = now
            return isStill
          },
          { interval: 100, timeout: 20_000 },
        )
        .toBe(true)
      expect(last).toBeLessThan(8 * mebibyte)
      await whileOthersWork(neighbour, async () => {
        for (let round = 0; round < 20; round++) await alive(sandbox)
        expect((await exec(sandbox, { argv: ["head", "-c", "5000000", "/dev/zero"] })).stdout.length).toBe(5_000_000)
      })
      expect(await written()).toBe(last)
      // Read on, it goes on.
      let bytes = 0
      for await (const output of flood.output()) if ((bytes += output.bytes.length) > 2 * last) break
    })

    it("ends a flood at its limit", async () => {
      await using sandbox = await victim()
      const result = await exec(sandbox, { argv: ["yes"], outputBytesMax: mebibyte })
      expect(result).toMatchObject({ reason: "limit", truncated: true })
      expect(result.stdout.length).toBe(mebibyte)
    })
  })

  describe("of what is counted for the whole machine", () => {
    it("gives a sandbox at most 64 terminals, and its neighbour its own", async () => {
      await using sandbox = await victim()
      await using taken = await hold(sandbox, ["terminals"])
      expect(taken).toMatchObject({ errno: "ENOSPC" })
      expect(taken.number).toBeLessThanOrEqual(64)
      await whileOthersWork(neighbour, async () => {
        const pty = { cols: 80, rows: 24 }
        expect((await exec(neighbour, { argv: ["tty"], pty })).stdout.toString()).toBe("/dev/pts/0\r\n")
        await expect(exec(sandbox, { argv: ["tty"], pty })).rejects.toMatchObject({ code: "limit" })
        await alive(sandbox)
      })
    })

    it("gives a sandbox at most 128 inotify instances, and its neighbour its own", async () => {
      await using sandbox = await victim()
      await using taken = await hold(sandbox, ["watchers"])
      expect(taken).toMatchObject({ errno: "EMFILE" })
      expect(taken.number).toBeLessThanOrEqual(128)
      await using other = await fixture.use({ mounts: [programs.mount] })
      await using theirs = await hold(other, ["watchers"])
      expect(theirs.number).toBeGreaterThanOrEqual(taken.number)
      await new Files(neighbour).watch("/workspace").then((changes) => changes[Symbol.asyncIterator]().return?.())
      await alive(sandbox)
    })

    it("gives a process at most its open files", async () => {
      await using sandbox = await victim({ openFilesMax: 256 })
      await using taken = await hold(sandbox, ["descriptors"])
      expect(taken).toMatchObject({ errno: "EMFILE" })
      expect(taken.number).toBeLessThanOrEqual(256)
      await whileOthersWork(neighbour, () => alive(sandbox))
      expect(await readAll(new Files(sandbox).read("/etc/hostname"), 100)).toEqual(Buffer.from("sandbox\n"))
    })

    it("refuses operations beyond what init bears, and bears the rest", async () => {
      await using sandbox = await victim({ openFilesMax: 256 })
      const opened = await Promise.allSettled(
        Array.from({ length: 300 }, () => Execution.start(sandbox, { argv: ["sleep", "5000"] })),
      )
      const running = opened.filter((one) => one.status === "fulfilled").map((one) => one.value)
      const refused = opened
        .filter((one) => one.status === "rejected")
        .map((one) => (one.reason as { code: string }).code)
      expect(running.length).toBeGreaterThan(10)
      expect(refused.filter((code) => !["limit", "unavailable"].includes(code))).toEqual([])
      await whileOthersWork(neighbour, async () => {
        for (const one of running) await one[Symbol.asyncDispose]()
      })
      await aliveSoon(sandbox)
      await expect.poll(() => pidsIn(fixture.root, sandbox.id).length, { timeout: 10_000 }).toBe(1)
    })
  })

  describe("of the kernel", () => {
    /** `write` of one byte to a file that may be opened counts as allowed; only these may succeed. */
    const harmless = new Set(["kill-stop", "kill-kill"])

    it.each([
      ["user", "strict"],
      ["user", "dev"],
      ["root", "dev"],
    ] as const)("is refused to %s in profile %s", async (user, profile) => {
      await using sandbox = await fixture.use({ mounts: [programs.mount], profile })
      const pid = initPid(fixture.root, sandbox.id)
      const said = parse((await nasty(sandbox, ["forbidden"], { user })).stdout)
      expect(said.length).toBeGreaterThan(35)
      const allowed = said.filter(({ errno }) => errno === "0").map(({ name }) => name)
      // Root may see how many descriptors init has, not what they are, and may make init the kernel's first choice: its own loss.
      const expected = user === "root" ? ["proc-fd", "proc-oom", "chroot", "setuid-root"] : []
      expect(allowed.filter((name) => !harmless.has(name))).toEqual(expected)
      expect(initPid(fixture.root, sandbox.id)).toBe(pid)
      expect(readFileSync(`/proc/${pid}/status`, "utf8")).toMatch(/^State:\s+[RSD]/m)
      await alive(sandbox)
    })

    it("does not let a signal from inside end init", async () => {
      await using sandbox = await victim()
      for (const user of ["user", "root"]) {
        await sh(sandbox, "for s in KILL STOP TERM INT HUP QUIT SEGV USR1 USR2 ALRM PIPE CHLD; do kill -$s 1; done", {
          user,
        })
        await alive(sandbox)
      }
    })
  })

  it("leaves the host with the memory it had", async () => {
    const before = freemem()
    {
      await using sandbox = await victim({ memoryBytes: 256 * mebibyte })
      await nasty(sandbox, ["fill", "/tmp/full"])
    }
    expect(before - freemem()).toBeLessThan(512 * mebibyte)
  })
})
