import { execFileSync } from "node:child_process"
import { lstatSync, mkdirSync, writeFileSync } from "node:fs"
import { newId } from "@warren/base/id.ts"
import { never, text } from "@warren/drivers/oci/testing/fixture.ts"
import { describe, expect, test } from "vitest"
import { build } from "../recipe/build.ts"
import { writeTar } from "../tar/writer.ts"
import { busyboxTree, file, folder } from "../testing/archives.ts"
import { dockerArchive } from "../testing/docker-archive.ts"
import { possibleLimits } from "../testing/keeper.ts"
import { writeOciLayout } from "../testing/oci-layout.ts"
import { isRoot, ordinaryUser, owned } from "../testing/ordinary-user.ts"
import { push, startRegistry } from "../testing/registry.ts"

/** Run by `rootless.live.test.ts`, as somebody who is not root. */
describe.skipIf(isRoot)("an ordinary user's images", () => {
  const user = ordinaryUser()

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
    writeOciLayout(user.temp.at("layout"), "layout:1", [writeTar(below), writeTar(above)])
    const folderOfImage = await user.images.import(user.temp.at("layout"))
    execFileSync("tar", [
      "--owner=12",
      "--group=34",
      "--mode=000",
      "-cf",
      user.temp.at("layout.tar"),
      "-C",
      user.temp.at("layout"),
      ".",
    ])
    expect(await user.images.import(user.temp.at("layout.tar"))).toEqual(folderOfImage)
    await using sandbox = await user.start("layout:1")
    expect(await text(sandbox, "ls -A /data /opaque; stat -c %u:%g /data /opaque; cat /opaque/new")).toBe(
      "/data:\n\n/opaque:\nnew\n7:7\n1000:1000\nnew",
    )
    expect(await text(sandbox, "mkdir /data/sub && ls -A /data/sub && echo made", { user: "root" })).toBe("made\n")
  })

  test("what docker saved, also read-only, and a snapshot of it goes on elsewhere", async () => {
    const layer = writeTar([file("added", "added", { uid: 1000, gid: 1000 })])
    writeFileSync(
      user.temp.at("saved.tar"),
      dockerArchive([{ name: "saved:1", layers: [writeTar(busyboxTree()), layer] }]),
    )
    await user.images.import(user.temp.at("saved.tar"))
    await using fixed = await user.start("saved:1", { isRootReadOnly: true })
    expect(await text(fixed, "touch /etc/x 2>/dev/null || echo read-only; touch /workspace/x && cat /added")).toBe(
      "read-only\nadded",
    )
    await using sandbox = await user.start("saved:1")
    expect(
      await text(sandbox, "echo mine > /added; busybox chown 9 /etc; echo x > /workspace/x; echo ok", { user: "root" }),
    ).toBe("ok\n")
    await user.driver.stop(sandbox.id)
    const snapshot = newId("snp")
    await user.driver.snapshot(sandbox.id, snapshot)
    await using fork = await user.start("saved:1", { from: snapshot })
    expect(await text(fork, "cat /added /workspace/x; stat -c %u /etc /added")).toBe("mine\nx\n9\n1000\n")
    await user.driver.removeSnapshot(snapshot)
  })

  test("a real registry: pulled, packed with gzip, and run", async () => {
    mkdirSync(user.temp.at("registry"))
    await using registry = await startRegistry(user.temp.at("registry"))
    const script = file("bin/hello", "#!/bin/sh\necho hello from the registry\n", { mode: 0o750, uid: 0, gid: 1000 })
    await push(registry.host, "hello", "1", [writeTar(busyboxTree(...owned)), writeTar([folder("bin/"), script])])
    await user.images.pull(`${registry.host}/hello:1`)
    await using sandbox = await user.start(`${registry.host}/hello:1`)
    expect(await text(sandbox, "hello; stat -c %u:%g /bin/hello")).toBe("hello from the registry\n0:1000\n")
  })

  test("a recipe: RUN as root and as somebody else, COPY with an owner, nothing made twice", async () => {
    await user.rootfs("tree", ...owned)
    mkdirSync(user.temp.at("context/sub"), { recursive: true })
    writeFileSync(user.temp.at("context/sub/inner"), "inner\n", { mode: 0o600 })
    const recipe = `FROM tree
WORKDIR /srv/app
COPY --chown=33:7 sub /srv/app/sub
RUN busybox chown 5:6 /data/hidden/web && rm -rf /shared && mkdir /shared && echo x > /shared/new && busybox ln /data/mine /data/third
USER 1000
RUN id -u > /workspace/me; echo more >> /data/mine
CMD ["cat", "/workspace/me"]`
    const steps: boolean[] = []
    const options = {
      images: user.images,
      driver: user.driver,
      recipe,
      context: user.temp.at("context"),
      name: "built",
      sandbox: { limits: possibleLimits },
    }
    const id = await build(options)
    expect(await build({ ...options, progress: (event) => event.kind === "step" && steps.push(event.isCached) })).toBe(
      id,
    )
    expect(steps.filter((isCached) => !isCached)).toHaveLength(1)
    await using sandbox = await user.start("built")
    const seen =
      "cat /workspace/me /data/mine; ls /shared; stat -c '%u:%g %h' /srv/app/sub/inner /data/hidden/web /data/third /workspace/me"
    expect(await text(sandbox, seen, { user: "root" })).toBe(
      "1000\nminemore\nnew\n33:7 1\n5:6 1\n1000:1000 2\n1000:1000 1\n",
    )
  })

  test("a stopped sandbox becomes an image, and stays", async () => {
    await user.rootfs("tree", ...owned)
    await using sandbox = await user.start("tree")
    const changes =
      "rm -rf /data/hidden /far && echo x > /new && busybox chown 12:34 /new && busybox chmod 4711 /new && busybox mkfifo /pipe"
    expect(await text(sandbox, `${changes} && echo done`, { user: "root" })).toBe("done\n")
    await expect(user.images.commit(user.driver, sandbox.id, "made")).rejects.toMatchObject({ code: "conflict" })
    await user.driver.stop(sandbox.id)
    const id = await user.images.commit(user.driver, sandbox.id, "made")
    expect(await user.images.commit(user.driver, sandbox.id, "made:again")).toBe(id)
    await using other = await user.start("made")
    expect(await text(other, "ls /data; ls /far /pipe 2>/dev/null; stat -c '%u:%g %a' /new", { user: "root" })).toBe(
      "mine\nnoted\nsame\n12:34 711\n",
    )
    await user.driver.start(sandbox.id, never)
  })

  test("what nobody needs goes, and no file of anybody else stays", async () => {
    await user.images.gc({ stepsMs: 0, blobsMs: 0 })
    const before = user.layers()
    await user.rootfs("passing", ...owned, file("only", "here"))
    const holder = newId("sbx")
    const image = await user.images.use("passing", holder)
    expect(user.layers().length).toBeGreaterThan(before.length)
    user.images.release("test")
    user.images.release(holder)
    user.images.delete("passing")
    const { layers: gone } = await user.images.gc()
    expect(gone.length).toBeGreaterThan(0)
    expect(user.layers()).toEqual(before)
    expect(user.drafts()).toEqual([])
    expect(image.layers.slice(-1).filter((path) => lstatSync(path, { throwIfNoEntry: false }))).toEqual([])
  })
})
