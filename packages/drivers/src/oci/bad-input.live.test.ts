import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import { silentLog } from "@warren/base/log.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Sandbox } from "../driver.ts"
import { exec } from "../init/exec.ts"
import { Files, readAll } from "../init/files.ts"
import { defaultLimits, type SandboxId, type SandboxSpec } from "../sandbox-spec.ts"
import { specOf } from "../spec-of.ts"
import { openCgroups } from "./cgroup/open.ts"
import { openOciDriver } from "./driver.ts"
import { Fixture, never, sh, text } from "./testing/fixture.ts"
import { footprint, lasting } from "./testing/invariants.ts"
import { programs } from "./testing/subject.ts"

/** Nonsense gets a typed fault, and nothing is left of it. */
describe("bad input", () => {
  const fixture = new Fixture()
  let folder = ""
  beforeAll(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "warren-bad-")))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /** What comes of a spec: the code of the fault at create or at start. Whatever was made is destroyed again. */
  async function outcome(
    changes: Parameters<Fixture["spec"]>[0],
  ): Promise<{ at: string; code: string; message: string }> {
    const spec = fixture.spec(changes)
    let at = "create"
    try {
      await fixture.driver.create(spec, never)
      at = "start"
      await fixture.driver.start(spec.id, never)
      return { at: "running", code: "", message: "" }
    } catch (thrown) {
      if (!(thrown instanceof Fault)) throw thrown
      return { at, code: thrown.code, message: thrown.message }
    } finally {
      await fixture.destroy(spec.id)
    }
  }
  const mount = (to: string, from = folder) => ({ mounts: [{ from, to, isReadOnly: false }] })

  describe("in a spec", () => {
    it.each<[string, () => Parameters<Fixture["spec"]>[0], string]>([
      ["a layer that is not there", () => ({ image: { layers: [join(folder, "no")] } }), "not_found"],
      ["no layer at all", () => ({ image: { layers: [] } }), "invalid"],
      ["a layer that is a file", () => ({ image: { layers: [file("layer")] } }), "invalid"],
      ["a layer behind a link", () => ({ image: { layers: [link("layer-link", folder)] } }), "invalid"],
      ["an empty layer", () => ({ image: { layers: [made("empty")] } }), ""],
      ["a relative layer", () => ({ image: { layers: ["usr"] } }), "invalid"],
      ["a layer with ..", () => ({ image: { layers: ["/usr/../usr"] } }), "invalid"],
      ["a layer that is a mount option", () => ({ image: { layers: ["/usr:/etc,upperdir=x"] } }), "invalid"],
      [
        "a graft that is not there",
        () => ({ image: { ...fixture.image, grafts: [{ from: "/no", to: "/usr" }] } }),
        "not_found",
      ],
      ["a mount that is not there", () => mount("/data", join(folder, "no")), "not_found"],
      ["a mount from behind a link", () => mount("/data", link("mount-link", "/etc")), "invalid"],
      ["a mount of a device", () => mount("/data", device("null")), "invalid"],
      ["a mount over init", () => mount("/run/warren/init"), "invalid"],
      ["a mount over the folder of init", () => mount("/run/warren"), "invalid"],
      ["a mount over the root", () => mount("/"), "invalid"],
      ["a mount over /proc", () => mount("/proc"), "invalid"],
      ["a mount below /proc", () => mount("/proc/sys"), "invalid"],
      ["a mount over /dev", () => mount("/dev"), "invalid"],
      ["a mount over /tmp", () => mount("/tmp/x"), "invalid"],
      ["a mount over name servers", () => mount("/etc/resolv.conf"), "invalid"],
      ["a mount that hides name servers", () => mount("/etc"), "invalid"],
      ["a mount over sudo", () => mount("/usr/local/bin"), "invalid"],
      ["a mount to a relative place", () => mount("data"), "invalid"],
      ["a mount to a place with ..", () => mount("/data/../etc"), "invalid"],
      ["a mount with a newline", () => mount("/da\nta"), "invalid"],
      ["a mount with a very long name", () => mount(`/${"x".repeat(5_000)}`), "invalid"],
      ["two mounts at one place", () => ({ mounts: [...mount("/a").mounts, ...mount("/a").mounts] }), "invalid"],
      ["a mount inside another", () => ({ mounts: [...mount("/a").mounts, ...mount("/a/b").mounts] }), "invalid"],
      ["a folder over a file", () => mount("/etc/passwd"), "invalid"],
      ["a name server that is a word", () => ({ dns: ["example.org"] }), "invalid"],
      ["a name server with options", () => ({ dns: ["1.1.1.1\noptions rotate"] }), "invalid"],
      ["a name server out of range", () => ({ dns: ["999.1.1.1"] }), "invalid"],
      ["a name server that is empty", () => ({ dns: [""] }), "invalid"],
      ["a host name with a newline", () => ({ hostname: "a\nb" }), "invalid"],
      ["a host name that is too long", () => ({ hostname: "x".repeat(64) }), "invalid"],
      ["no host name", () => ({ hostname: "" }), "invalid"],
      ["too little memory", () => ({ limits: { memoryBytes: 4096 } }), "invalid"],
      ["more memory than there is", () => ({ limits: { memoryBytes: 2 ** 45 } }), "invalid"],
      ["memory that is not a number", () => ({ limits: { memoryBytes: Number.NaN } }), "invalid"],
      ["no processes", () => ({ limits: { pidsMax: 0 } }), "invalid"],
      ["half a process", () => ({ limits: { pidsMax: 100.5 } }), "invalid"],
      ["an infinite cpu", () => ({ limits: { cpus: Number.POSITIVE_INFINITY } }), "invalid"],
      ["a negative cpu", () => ({ limits: { cpus: -1 } }), "invalid"],
      ["more open files than there can be", () => ({ limits: { openFilesMax: 2 ** 40 } }), "invalid"],
      ["a negative disk", () => ({ limits: { diskBytes: -1 } }), "invalid"],
      ["an id that leads elsewhere", () => ({ id: "sbx_../../../etc" as SandboxId }), "invalid"],
    ])("%s", async (_, changes, code) => {
      const refused = async (): Promise<void> => {
        const got = await outcome(changes()).catch((thrown: unknown) => thrown)
        // An id that is none cannot be destroyed either, and says so.
        expect((got as { code: string }).code, JSON.stringify(got)).toBe(code)
      }
      // The first time makes what the case needs.
      await refused()
      await fixture.leavesNothing(refused)
    })

    const file = (name: string): string => {
      writeFileSync(join(folder, name), "")
      return join(folder, name)
    }
    const device = (name: string): string => {
      rmSync(join(folder, name), { force: true })
      execFileSync("mknod", [join(folder, name), "c", "1", "3"])
      return join(folder, name)
    }
    const made = (name: string): string => {
      mkdirSync(join(folder, name), { recursive: true })
      return join(folder, name)
    }
    const link = (name: string, target: string): string => {
      rmSync(join(folder, name), { force: true })
      symlinkSync(target, join(folder, name))
      return join(folder, name)
    }
  })

  describe("in an image", () => {
    /** A layer over the host's, in which one name is something else. */
    const layer = (name: string, make: (at: string) => void): { image: SandboxSpec["image"] } => {
      const at = join(folder, name)
      rmSync(at, { recursive: true, force: true })
      mkdirSync(at, { recursive: true, mode: 0o755 })
      make(at)
      return { image: { ...fixture.image, layers: [at, ...fixture.image.layers] } }
    }

    it.each(["dev", "proc", "tmp", "run", "etc", "workspace", "run/warren"])(
      "whose /%s is a link to a folder of the host: nothing is written there",
      async (name) => {
        const target = join(folder, `trap-${name.replace("/", "-")}`)
        mkdirSync(target, { recursive: true })
        const { at, code } = await outcome(
          layer(`linked-${name.replace("/", "-")}`, (root) => {
            mkdirSync(join(root, name, ".."), { recursive: true })
            symlinkSync(target, join(root, name))
          }),
        )
        expect(readdirSync(target)).toEqual([])
        expect(at === "running" || ["invalid", "unavailable", "not_found"].includes(code), `${at} ${code}`).toBe(true)
      },
    )

    it("whose /dev is a link up and out", async () => {
      const { at, code } = await outcome(
        layer("up", (root) => symlinkSync("../../../../../../../tmp", join(root, "dev"))),
      )
      expect(at === "running" || ["invalid", "unavailable", "not_found"].includes(code), `${at} ${code}`).toBe(true)
    })

    it("without a mount point for what is mounted", async () => {
      expect(await outcome({ image: { layers: [mkLayer()] }, isRootReadOnly: true })).not.toMatchObject({
        code: "internal",
      })
    })
    const mkLayer = (): string => {
      const at = join(folder, "bare")
      mkdirSync(at, { recursive: true })
      return at
    }
  })

  describe("to a running sandbox", () => {
    let sandbox: Sandbox
    beforeAll(async () => {
      sandbox = await fixture.start()
    })

    it("that is not an executable, not there, a folder, or of the wrong format", async () => {
      await sh(
        sandbox,
        "printf garbage > /workspace/garbage; chmod +x /workspace/garbage; printf '#!/no/such\\n' > /workspace/script; chmod +x /workspace/script",
      )
      const cases: [string[], string][] = [
        [["/etc/passwd"], "invalid"],
        [["/etc"], "invalid"],
        [["/no/such"], "not_found"],
        [["no-such"], "not_found"],
        [["/workspace/script"], "not_found"],
        [["/workspace/garbage"], "invalid"],
        [[""], "not_found"],
        [["/etc/passwd/x"], "invalid"],
      ]
      for (const [argv, code] of cases) {
        await expect(exec(sandbox, { argv }), argv.join(" ")).rejects.toMatchObject({ code })
      }
    })

    it.each(["nobody-here", "70000", "-1", "0:99999", "4294967295", "1000:", ":", "1000:1000:1000", "user root"])(
      "that is not a user: %s",
      async (user) => {
        await expect(exec(sandbox, { argv: ["id"], user })).rejects.toMatchObject({ code: "invalid" })
        expect(await text(sandbox, "echo alive")).toBe("alive\n")
      },
    )

    it.each(["root", "0", "0:0", "00", "0:1000"])("that is root in profile strict: %s", async (user) => {
      await using strict = await fixture.use({ profile: "strict" })
      const got = await exec(strict, { argv: ["id"], user }).catch((fault: Fault) => fault)
      expect(got, String((got as { stdout?: Buffer }).stdout)).toMatchObject({ code: "forbidden" })
    })

    it.each(["65533", "warren"])("that is init's own user, %s, gets none of init's rights", async (user) => {
      const got = await sh(
        sandbox,
        "grep -E '^Cap(Eff|Prm|Bnd)' /proc/self/status; kill -9 1; cat /proc/1/environ; ls /proc/1/fd",
        { user },
      ).catch((fault: Fault) => fault)
      if (got instanceof Fault) expect(["invalid", "forbidden"]).toContain(got.code)
      else
        expect(got.stdout.toString().replaceAll(/\s+/g, " ")).toBe(
          ["Prm", "Eff", "Bnd"].map((set) => `Cap${set}: 0000000000000000 `).join(""),
        )
      expect(await text(sandbox, "echo alive")).toBe("alive\n")
    })

    it("that is a folder that is not there, or none", async () => {
      await expect(exec(sandbox, { argv: ["true"], cwd: "/no" })).rejects.toMatchObject({ code: "not_found" })
      await expect(exec(sandbox, { argv: ["true"], cwd: "/etc/passwd" })).rejects.toMatchObject({ code: "not_found" })
    })

    it("that is too long", async () => {
      await expect(exec(sandbox, { argv: ["true", "x".repeat(200_000)] })).rejects.toMatchObject({ code: "invalid" })
      await expect(exec(sandbox, { argv: ["true", "x".repeat(2_000_000)] })).rejects.toMatchObject({ code: "limit" })
      expect(await text(sandbox, "echo alive")).toBe("alive\n")
    })

    it("that is a path through a link stays inside", async () => {
      const files = new Files(sandbox)
      await sh(
        sandbox,
        "ln -sfn / /workspace/top; ln -sfn ../../../../../../../../etc/hostname /workspace/up; ln -sfn loop /workspace/loop; ln -sfn /proc/1/root /workspace/proc",
      )
      expect((await readAll(files.read("/workspace/top/etc/hostname"), 100)).toString()).toBe("sandbox\n")
      expect((await readAll(files.read("/workspace/up"), 100)).toString()).toBe("sandbox\n")
      await expect(readAll(files.read("/workspace/loop"), 100)).rejects.toBeInstanceOf(Fault)
      await expect(readAll(files.read("/workspace/proc/etc/passwd"), 100)).rejects.toMatchObject({ code: "forbidden" })
      await expect(files.read("/workspace/nu\0l").next()).rejects.toMatchObject({ code: "invalid" })
      await expect(files.read("relative").next()).rejects.toMatchObject({ code: "invalid" })
      await expect(files.read("/dev/zero").next()).rejects.toMatchObject({ code: "invalid" })
    })
  })

  describe("of a machine", () => {
    const elsewhere = (): string => realpathSync(mkdtempSync(join(tmpdir(), "wb-")))

    it("without a runtime: the package is named", async () => {
      const root = elsewhere()
      const path = process.env["PATH"]
      process.env["PATH"] = folder
      try {
        await expect(openOciDriver({ root, programs, log: silentLog })).rejects.toMatchObject({
          code: "unavailable",
          hint: "apt-get install crun",
        })
      } finally {
        process.env["PATH"] = path
      }
      expect(readdirSync(root)).toEqual([])
      rmSync(root, { recursive: true })
    })

    it("without a launcher: the command that builds it is named, and nothing is left", async () => {
      const root = elsewhere()
      const before = footprint(root)
      const opening = openOciDriver({ root, programs: { ...programs, launch: "/no/such" }, log: silentLog })
      await expect(opening).rejects.toMatchObject({ code: "unavailable", hint: "build it with: npm run build" })
      rmSync(root, { recursive: true })
      expect(await lasting(before, root)).toEqual([])
    })

    it("whose cgroups cannot be written: a fault that says what would help", () => {
      // The kernel makes no group below a file.
      expect(() => openCgroups("cgroup.procs")).toThrow(
        expect.objectContaining({ code: "unavailable", hint: expect.stringContaining("writable cgroup") as string }),
      )
    })

    it("with a second driver for the same folder", async () => {
      await expect(openOciDriver({ root: fixture.root, programs, log: silentLog })).rejects.toMatchObject({
        code: "conflict",
      })
      expect(await text(await fixture.start(), "echo alive")).toBe("alive\n")
    })

    it("whose folder is so deep that a socket's name does not fit", async () => {
      const root = join(elsewhere(), "x".repeat(90))
      const made = await openOciDriver({ root, programs, log: silentLog }).then(
        async (driver) => {
          const spec = specOf(fixture.image, { limits: { ...defaultLimits, diskBytes: 0 } })
          try {
            await driver.create(spec, never)
            return await driver.start(spec.id, never).catch((thrown: unknown) => thrown)
          } finally {
            await driver.destroy(spec.id)
            await driver[Symbol.asyncDispose]()
          }
        },
        (thrown: unknown) => thrown,
      )
      expect(made).toMatchObject({ code: "invalid" })
      rmSync(join(root, ".."), { recursive: true })
    })
  })

  describe("in time", () => {
    it("the same id twice at once: one is made, the other is refused", async () => {
      await fixture.leavesNothing(async () => {
        const spec = fixture.spec()
        const creates = await Promise.allSettled(Array.from({ length: 8 }, () => fixture.driver.create(spec, never)))
        expect(creates.filter(({ status }) => status === "fulfilled").length).toBe(1)
        for (const one of creates) if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "conflict" })
        const starts = await Promise.allSettled(Array.from({ length: 8 }, () => fixture.driver.start(spec.id, never)))
        expect(starts.filter(({ status }) => status === "fulfilled").length).toBe(1)
        for (const one of starts) if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "conflict" })
        await Promise.all(Array.from({ length: 8 }, () => fixture.driver.stop(spec.id, 10)))
        await Promise.all(Array.from({ length: 8 }, () => fixture.destroy(spec.id)))
      })
    })

    it("things that cannot follow one another", async () => {
      const id = newId("sbx")
      await expect(fixture.driver.start(id, never)).rejects.toMatchObject({ code: "not_found" })
      await fixture.driver.stop(id)
      await fixture.destroy(id)
      expect(await fixture.driver.exists(id)).toBe(false)
    })

    it("destroy in every phase", { timeout: 120_000 }, async () => {
      await fixture.leavesNothing(async () => {
        for (let round = 0; round < 40; round++) {
          const spec = fixture.spec()
          const create = fixture.driver.create(spec, never).catch(() => undefined)
          if (round % 4 > 0) await create
          const start = round % 4 > 0 ? fixture.driver.start(spec.id, never).catch(() => undefined) : undefined
          if (round % 4 > 1) await start
          if (round % 4 > 2) void fixture.driver.stop(spec.id, 50).catch(() => undefined)
          await pause(round % 7)
          await fixture.destroy(spec.id)
          await create
          await start
          expect(await fixture.driver.exists(spec.id)).toBe(false)
        }
      })
    })

    it(
      "100 starts that are aborted at some moment: each ends with that reason or runs, and nothing is left",
      { timeout: 120_000 },
      async () => {
        let aborted = 0
        await fixture.leavesNothing(async () => {
          for (let round = 0; round < 100; round++) {
            const id = await fixture.create()
            const controller = new AbortController()
            const reason = new Fault("cancelled", `changed my mind ${round}`)
            const start = fixture.driver.start(id, controller.signal)
            const settled = start.then(
              () => undefined,
              (thrown: unknown) => thrown,
            )
            await pause((round / 100) * 15)
            controller.abort(reason)
            const thrown = await settled
            if (thrown === undefined) {
              expect(await text(await start, "echo alive")).toBe("alive\n")
            } else {
              expect(thrown).toBe(reason)
              aborted++
              if (round % 10 === 0) await fixture.driver.start(id, never)
            }
            await fixture.destroy(id)
          }
        })
        console.log(`bad input: ${aborted} of 100 starts were aborted in time`)
        expect(aborted).toBeGreaterThan(0)
      },
    )
  })
})

/** A moment of this many milliseconds: what is tested is that the moment does not matter. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
