import { execFileSync, spawnSync } from "node:child_process"
import { lstatSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import { silentLog } from "@warren/base/log.ts"
import { bundleProgram, Program } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import {
  canLendLayers,
  canSnapshot,
  type Driver,
  type Layering,
  type Sandbox,
  type Snapshotting,
} from "@warren/drivers/driver.ts"
import { hostImage } from "@warren/drivers/oci/host-image.ts"
import { never, sh, text } from "@warren/drivers/oci/testing/fixture.ts"
import { ociSubject, programs } from "@warren/drivers/oci/testing/subject.ts"
import { type Image, type SandboxId, type SandboxSpec } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Images } from "./images.ts"
import { keeperFor } from "./keeper/open.ts"
import { archiveLimits } from "./limits.ts"
import { build } from "./recipe/build.ts"
import { writeTar } from "./tar/writer.ts"
import { busyboxTree, endlessTar, file, folder, hardlink, symlink, type Content } from "./testing/archives.ts"
import { dockerArchive } from "./testing/docker-archive.ts"
import { hostileArchives } from "./testing/hostile.ts"
import { keeperSource, possibleLimits } from "./testing/keeper.ts"
import { writeOciLayout } from "./testing/oci-layout.ts"
import { portrait } from "./testing/portrait.ts"
import { push, startRegistry } from "./testing/registry.ts"

/** Run by `rootless.live.test.ts`, as somebody who is not root. */
const isRoot = process.getuid?.() === 0
const own = process.getuid?.() ?? 0
/** Small enough for a test to reach. */
const limits = { ...archiveLimits, entriesMax: 1000, ratioFromBytes: 2_000_000, unpackedBytesMax: 100_000_000 }

describe.skipIf(isRoot)("an ordinary user's images", () => {
  const subject = isRoot ? undefined : ociSubject()
  const made = new Set<SandboxId>()
  let driver: Driver & Layering & Snapshotting
  let temp: TempFolder
  let images: Images
  let program: string

  beforeAll(async () => {
    if (!subject) return
    const opened: Driver = await subject.open()
    if (!canLendLayers(opened) || !canSnapshot(opened)) throw new Error("the driver lends nothing")
    driver = opened
    temp = await TempFolder.make()
    program = await bundleProgram(keeperSource, temp)
    images = await open()
  })
  afterAll(async () => {
    for (const id of made) await driver.destroy(id)
    for (const { id, names } of images.list()) if (id !== "host") names.forEach((name) => images.delete(name))
    for (const id of made) images.release(id)
    images.release("test")
    await images.gc({ stepsMs: 0, blobsMs: 0 })
    expect(foreign(temp.at("images"))).toEqual([])
    await images[Symbol.asyncDispose]()
    await driver[Symbol.asyncDispose]()
    await temp[Symbol.asyncDispose]()
  })

  const open = (keeper = keeperFor(driver, program)): Promise<Images> =>
    Images.open({ root: temp.at("images"), log: silentLog, limits, keeper })
  const drafts = (): string[] => readdirSync(temp.at("images/drafts"))
  const layers = (): string[] => readdirSync(temp.at("images/layers/sha256"))

  async function create(image: Image, changes: Partial<SandboxSpec> = {}): Promise<SandboxId> {
    const spec = specOf(image, { limits: possibleLimits, ...changes })
    made.add(spec.id)
    await driver.create(spec, never)
    return spec.id
  }

  async function start(name: string, changes: Partial<SandboxSpec> = {}): Promise<Sandbox & AsyncDisposable> {
    const id = await create(await images.use(name, "test"), changes)
    const sandbox = await driver.start(id, never)
    return Object.assign(sandbox, { [Symbol.asyncDispose]: () => driver.destroy(id) })
  }

  async function rootfs(name: string, ...tree: Content[]): Promise<void> {
    writeFileSync(temp.at("tree.tar"), writeTar(busyboxTree(...tree)))
    await images.import(temp.at("tree.tar"), { name })
  }

  /** What of a tree belongs to somebody else. */
  function foreign(path: string): string[] {
    // It says no at what is not ours to look into, after it has named it.
    const { stdout } = spawnSync("find", [path, "!", "-uid", String(own)])
    return stdout.toString().split("\n").filter(Boolean)
  }

  const owned = [
    folder("data/", { uid: 1000, gid: 1000, mode: 0o750 }),
    file("data/mine", "mine", { uid: 1000, gid: 1000, mode: 0o600 }),
    hardlink("data/same", "data/mine"),
    folder("data/hidden/", { uid: 33, gid: 7, mode: 0o700 }),
    file("data/hidden/web", "web", { uid: 33, gid: 33, mode: 0o400 }),
    file("bin/su", "x", { mode: 0o6755, xattrs: new Map([["security.capability", Buffer.alloc(20)]]) }),
    file("data/noted", "x", { uid: 65_534, gid: 65_534, xattrs: new Map([["user.note", Buffer.from("kept")]]) }),
    file("far", "x", { uid: 100_000, gid: 70_000 }),
    folder("shared/", { mode: 0o3775, gid: 1000 }),
    symlink("link", "data/mine"),
  ]

  test("a plain tree runs with its owners, links, modes and attributes; set-user-id is gone", async () => {
    await rootfs("tree", ...owned)
    await using sandbox = await start("tree")
    const files = "/bin/busybox /data /data/mine /data/hidden /data/hidden/web /bin/su /data/noted /far /shared /link"
    expect(await text(sandbox, `stat -c '%u:%g %a %h' ${files}`, { user: "root" })).toBe(
      "0:0 755 1\n1000:1000 750 3\n1000:1000 600 2\n33:7 700 2\n33:33 400 1\n0:0 755 1\n65534:65534 644 1\n" +
        "65534:65534 644 1\n0:1000 3775 2\n0:0 777 1\n",
    )
    expect(await text(sandbox, "id -u; cat /data/mine; cat /data/hidden/web 2>/dev/null || echo no")).toBe(
      "1000\nmineno\n",
    )
    const [top = ""] = (await images.use("tree", "test")).layers.slice(-1)
    // We may not even look at it; whoever keeps it may.
    expect(() => readdirSync(join(top, "data"))).toThrow(/EACCES/)
    expect(lstatSync(top).uid).not.toBe(own)
    const [command, ...args] = driver.asKeeper?.([
      "getfattr",
      "--only-values",
      "-n",
      "user.note",
      join(top, "data/noted"),
    ]) ?? [""]
    expect(execFileSync(command, args).toString()).toBe("kept")
  })

  test("root inside edits, gives away and takes away what the image has; the user does not, and the image stays", async () => {
    await rootfs("tree", ...owned)
    await using sandbox = await start("tree")
    const changes =
      "echo more >> /data/hidden/web && busybox chown 5:6 /data/mine && rm /etc/passwd && busybox chmod 700 /bin/su"
    const refused = changes.replaceAll("&&", ";").replaceAll("busybox ", "/bin/busybox ")
    expect((await sh(sandbox, refused)).stderr.toString().trim().split("\n")).toHaveLength(4)
    expect(await text(sandbox, `${changes} && echo done`, { user: "root" })).toBe("done\n")
    expect(
      await text(sandbox, "cat /data/hidden/web; stat -c %u:%g /data/same /data/mine", { user: "root" }),
    ).toContain("webmore\n")
    await using other = await start("tree")
    expect(
      await text(other, "cat /data/hidden/web; stat -c %u:%g /data/mine; test -f /etc/passwd && echo there", {
        user: "root",
      }),
    ).toBe("web1000:1000\nthere\n")
  })

  test("says that sandboxes of images share their ids, and nothing of files that cannot be changed", async () => {
    await rootfs("tree", ...owned)
    await using one = await start("tree")
    await using two = await start("tree", { profile: "strict" })
    const [first, second] = [await one.posture(), await two.posture()]
    expect(first.uidMap).toEqual(second.uidMap)
    for (const { degraded } of [first, second]) {
      expect(degraded).toContainEqual(expect.stringMatching(/also those of other sandboxes/))
      expect(degraded).not.toContainEqual(expect.stringMatching(/nobody's/))
    }
    const host = await create(await hostImage(temp.at("host")))
    const posture = await (await driver.start(host, never)).posture()
    const isAlone = !posture.degraded.some((words) => words.includes("also those of other sandboxes"))
    // Where there are ids for one sandbox only, all share them.
    expect(posture.uidMap[0]?.outside === first.uidMap[0]?.outside).toBe(!isAlone)
    await driver.destroy(host)
  })

  test("an OCI layout: whiteouts and opaque folders hide what is below", async () => {
    const below = busyboxTree(
      ...[folder("data/"), file("data/gone", "old"), folder("data/sub/"), file("data/sub/below", "x")],
      ...[folder("opaque/", { uid: 1000, gid: 1000, mode: 0o700 }), file("opaque/below", "x", { uid: 1000 })],
    )
    const above = [
      ...[folder("data/", { uid: 7, gid: 7 }), file("data/.wh.gone"), file("data/.wh.sub")],
      ...[
        folder("opaque/", { uid: 1000, gid: 1000, mode: 0o700 }),
        file("opaque/.wh..wh..opq"),
        file("opaque/new", "new"),
      ],
    ]
    writeOciLayout(temp.at("layout"), "layout:1", [writeTar(below), writeTar(above)])
    const folderOfImage = await images.import(temp.at("layout"))
    execFileSync("tar", [
      "--owner=12",
      "--group=34",
      "--mode=000",
      "-cf",
      temp.at("layout.tar"),
      "-C",
      temp.at("layout"),
      ".",
    ])
    expect(await images.import(temp.at("layout.tar"))).toEqual(folderOfImage)
    await using sandbox = await start("layout:1")
    expect(await text(sandbox, "ls -A /data /opaque; stat -c %u:%g /data /opaque; cat /opaque/new")).toBe(
      "/data:\n\n/opaque:\nnew\n7:7\n1000:1000\nnew",
    )
    expect(await text(sandbox, "mkdir /data/sub && ls -A /data/sub && echo made", { user: "root" })).toBe("made\n")
  })

  test("what docker saved, also read-only, and a snapshot of it goes on elsewhere", async () => {
    const layer = writeTar([file("added", "added", { uid: 1000, gid: 1000 })])
    writeFileSync(temp.at("saved.tar"), dockerArchive([{ name: "saved:1", layers: [writeTar(busyboxTree()), layer] }]))
    await images.import(temp.at("saved.tar"))
    await using fixed = await start("saved:1", { isRootReadOnly: true })
    expect(await text(fixed, "touch /etc/x 2>/dev/null || echo read-only; touch /workspace/x && cat /added")).toBe(
      "read-only\nadded",
    )
    await using sandbox = await start("saved:1")
    expect(
      await text(sandbox, "echo mine > /added; busybox chown 9 /etc; echo x > /workspace/x; echo ok", { user: "root" }),
    ).toBe("ok\n")
    await driver.stop(sandbox.id)
    const snapshot = newId("snp")
    await driver.snapshot(sandbox.id, snapshot)
    await using fork = await start("saved:1", { from: snapshot })
    expect(await text(fork, "cat /added /workspace/x; stat -c %u /etc /added")).toBe("mine\nx\n9\n1000\n")
    await driver.removeSnapshot(snapshot)
  })

  test("a real registry: pulled, packed with gzip, and run", async () => {
    mkdirSync(temp.at("registry"))
    await using registry = await startRegistry(temp.at("registry"))
    const script = file("bin/hello", "#!/bin/sh\necho hello from the registry\n", { mode: 0o750, uid: 0, gid: 1000 })
    await push(registry.host, "hello", "1", [writeTar(busyboxTree(...owned)), writeTar([folder("bin/"), script])])
    await images.pull(`${registry.host}/hello:1`)
    await using sandbox = await start(`${registry.host}/hello:1`)
    expect(await text(sandbox, "hello; stat -c %u:%g /bin/hello")).toBe("hello from the registry\n0:1000\n")
  })

  test("a recipe: RUN as root and as somebody else, COPY with an owner, nothing made twice", async () => {
    await rootfs("tree", ...owned)
    mkdirSync(temp.at("context/sub"), { recursive: true })
    writeFileSync(temp.at("context/sub/inner"), "inner\n", { mode: 0o600 })
    const recipe = `FROM tree
WORKDIR /srv/app
COPY --chown=33:7 sub /srv/app/sub
RUN busybox chown 5:6 /data/hidden/web && rm -rf /shared && mkdir /shared && echo x > /shared/new && busybox ln /data/mine /data/third
USER 1000
RUN id -u > /workspace/me; echo more >> /data/mine
CMD ["cat", "/workspace/me"]`
    const steps: boolean[] = []
    const options = {
      images,
      driver,
      recipe,
      context: temp.at("context"),
      name: "built",
      sandbox: { limits: possibleLimits },
    }
    const id = await build(options)
    expect(await build({ ...options, progress: (event) => event.kind === "step" && steps.push(event.isCached) })).toBe(
      id,
    )
    expect(steps.filter((isCached) => !isCached)).toHaveLength(1)
    await using sandbox = await start("built")
    const seen =
      "cat /workspace/me /data/mine; ls /shared; stat -c '%u:%g %h' /srv/app/sub/inner /data/hidden/web /data/third /workspace/me"
    expect(await text(sandbox, seen, { user: "root" })).toBe(
      "1000\nminemore\nnew\n33:7 1\n5:6 1\n1000:1000 2\n1000:1000 1\n",
    )
  })

  test("a stopped sandbox becomes an image, and stays", async () => {
    await rootfs("tree", ...owned)
    await using sandbox = await start("tree")
    const changes =
      "rm -rf /data/hidden /far && echo x > /new && busybox chown 12:34 /new && busybox chmod 4711 /new && busybox mkfifo /pipe"
    expect(await text(sandbox, `${changes} && echo done`, { user: "root" })).toBe("done\n")
    await expect(images.commit(driver, sandbox.id, "made")).rejects.toMatchObject({ code: "conflict" })
    await driver.stop(sandbox.id)
    const id = await images.commit(driver, sandbox.id, "made")
    expect(await images.commit(driver, sandbox.id, "made:again")).toBe(id)
    await using other = await start("made")
    expect(await text(other, "ls /data; ls /far /pipe 2>/dev/null; stat -c '%u:%g %a' /new", { user: "root" })).toBe(
      "mine\nnoted\nsame\n12:34 711\n",
    )
    await driver.start(sandbox.id, never)
  })

  test("what nobody needs goes, and no file of anybody else stays", async () => {
    await images.gc({ stepsMs: 0, blobsMs: 0 })
    const before = layers()
    await rootfs("passing", ...owned, file("only", "here"))
    const holder = newId("sbx")
    const image = await images.use("passing", holder)
    expect(layers().length).toBeGreaterThan(before.length)
    images.release("test")
    images.release(holder)
    images.delete("passing")
    const { layers: gone } = await images.gc()
    expect(gone.length).toBeGreaterThan(0)
    expect(layers()).toEqual(before)
    expect(drafts()).toEqual([])
    expect(image.layers.slice(-1).filter((path) => lstatSync(path, { throwIfNoEntry: false }))).toEqual([])
  })

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
    await expect(images.store.add(fails, { pin })).rejects.toBe(broken)
    const stop = new AbortController()
    const reason = new Error("enough")
    await expect(
      images.store.add(
        half(() => stop.abort(reason)),
        { pin, signal: stop.signal },
      ),
    ).rejects.toBe(reason)
    await expect(
      images.store.add(
        half(() => undefined),
        { pin, signal: stop.signal },
      ),
    ).rejects.toBe(reason)
    expect(drafts()).toEqual([])
  })

  test("a keeper that cannot be run, or is killed, is told; what it left goes with the next open", async () => {
    await images[Symbol.asyncDispose]()
    images = await open(keeperFor(driver, temp.at("nowhere.mjs")))
    writeFileSync(temp.at("tree.tar"), writeTar(busyboxTree(...owned, file("unique", "to this test"))))
    await expect(images.import(temp.at("tree.tar"), { name: "x" })).rejects.toMatchObject({ code: "unavailable" })
    await images[Symbol.asyncDispose]()
    // Half of a layer, as a process leaves it that was killed.
    const [command, ...args] = driver.asKeeper?.([
      "sh",
      "-c",
      `mkdir -p -m 700 ${temp.at("images/drafts/d-1/layer/root/etc")}; touch ${temp.at("images/drafts/d-1/layer/root/etc/x")}`,
    ]) ?? [""]
    mkdirSync(temp.at("images/drafts/d-1/layer"), { recursive: true })
    execFileSync(command, args)
    expect(foreign(temp.at("images/drafts")).length).toBeGreaterThan(0)
    images = await open()
    expect(drafts()).toEqual([])
    await images.import(temp.at("tree.tar"), { name: "x" })
    images.delete("x")
  })

  /** Resolves when a layer is being made there, and has files of somebody else. */
  async function isBegun(root: string): Promise<void> {
    await expect.poll(() => foreign(join(root, "drafts")).length, { timeout: 30_000 }).toBeGreaterThan(5)
  }
  const keepers = (): number[] => pids().filter((pid) => commandOf(pid).includes(program))

  test("a keeper that is killed is told, and leaves nothing", async () => {
    const adding = images.store.add(endlessTar(), { pin: () => undefined }).catch((thrown: unknown) => thrown)
    await isBegun(temp.at("images"))
    for (const pid of keepers()) process.kill(pid, "SIGKILL")
    expect(await adding).toMatchObject({ code: "unavailable", message: expect.stringContaining("SIGKILL") as string })
    expect(drafts()).toEqual([])
    await rootfs("tree", ...owned)
  })

  test("a keeper ends with whoever it works for, and half of its layer with the next open", async () => {
    const endless = await bundleProgram(new URL("testing/endless.ts", import.meta.url), temp)
    const root = temp.at("killed")
    {
      await using running = new Program(endless, [temp.at("other"), JSON.stringify(programs), program, root])
      await isBegun(root)
      running.kill()
      await running.ended
    }
    await expect.poll(keepers).toEqual([])
    expect(foreign(join(root, "drafts")).length).toBeGreaterThan(5)
    await using again = await Images.open({ root, log: silentLog, keeper: keeperFor(driver, program) })
    expect(foreign(root)).toEqual([])
    expect(again.store.catalog.layers()).toEqual([])
  })

  test("without a keeper there is the machine itself, and a word why there is nothing else", async () => {
    await images[Symbol.asyncDispose]()
    await using bare = await Images.open({ root: temp.at("bare"), log: silentLog })
    images = await open()
    expect((await bare.use("host", "me")).grafts).toContainEqual({ from: "/usr", to: "/usr" })
    writeFileSync(temp.at("tree.tar"), writeTar(busyboxTree()))
    await expect(bare.import(temp.at("tree.tar"), { name: "x" })).rejects.toMatchObject({
      code: "unsupported",
      hint: expect.stringContaining("oci") as string,
    })
    expect(readdirSync(temp.at("bare/drafts"))).toEqual([])
  })

  describe("hostile archives", () => {
    const place = join(tmpdir(), `warren-canary-${process.pid}`)
    beforeAll(() => {
      mkdirSync(join(place, "dir"), { recursive: true })
      for (const name of ["secret", "dir/inner"]) writeFileSync(join(place, name), "canary")
      for (const name of ["secret", "dir/inner", "dir", ""]) utimesSync(join(place, name), 1, 2)
    })
    afterAll(() => void execFileSync("rm", ["-rf", place]))

    test.each(Object.entries(hostileArchives(place)))(
      "%s: is refused by name, and touches nothing",
      async (_, { archive, says }) => {
        writeFileSync(temp.at("hostile.tar"), archive)
        portrait(place)
        const before = [portrait(place), layers()]
        const failure: unknown = await images
          .import(temp.at("hostile.tar"), { name: "bad", format: "rootfs" })
          .catch((thrown: unknown) => thrown)
        expect(failure).toBeInstanceOf(Fault)
        expect((failure as Fault).message).toContain(says)
        expect(["invalid", "limit"]).toContain((failure as Fault).code)
        expect([portrait(place), layers()]).toEqual(before)
        expect(drafts()).toEqual([])
      },
    )
  })

  test("the keeper has no network, cannot get more rights, and is nobody of importance outside", () => {
    const [command, ...args] = driver.asKeeper?.([
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
    expect(statSync(program).uid).toBe(own)
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
