import { writeFileSync } from "node:fs"
import { silentLog } from "@warren/base/log.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { Fixture, text } from "@warren/drivers/oci/testing/fixture.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Images } from "./images.ts"
import { busyboxTree, file, folder, symlink, type Content } from "./testing/archives.ts"
import { dockerArchive } from "./testing/docker-archive.ts"
import { writeTar } from "./tar/writer.ts"

let temp: TempFolder
let images: Images
let made = 0

beforeAll(async () => {
  temp = await TempFolder.make()
  images = await Images.open({ root: temp.at("images"), log: silentLog })
})
afterAll(async () => {
  await images[Symbol.asyncDispose]()
  await temp[Symbol.asyncDispose]()
})
// After the hooks above: the host is compared while the images are open, before and after.
const fixture = new Fixture()

/** An image of these layers, the bottom one first. */
async function imageOf(...layers: Content[][]): Promise<string> {
  const path = temp.at(`${made++}.tar`)
  const name = `test/image-${made}:latest`
  writeFileSync(path, dockerArchive([{ name, layers: layers.map(writeTar) }]))
  await images.import(path)
  return name
}

async function start(name: string) {
  return fixture.use({ image: await images.use(name, `test-${made++}`) })
}

describe("an image in a sandbox", () => {
  test("a bare busybox starts, with a user, a workspace and no root of its own", async () => {
    const path = temp.at("busybox.tar")
    writeFileSync(path, writeTar(busyboxTree()))
    await images.import(path, { name: "busybox" })
    await using sandbox = await start("busybox")
    expect(await text(sandbox, "id; stat -c '%u %a' /workspace /home/user; touch /workspace/x && echo ok")).toBe(
      "uid=1000(user) gid=1000(user)\n1000 755\n1000 755\nok\n",
    )
    expect(await text(sandbox, "id -u; cat /etc/passwd | wc -l", { user: "root" })).toBe("0\n3\n")
  })

  test("the workspace and the home of an image are the user's, whoever had them", async () => {
    const name = await imageOf(
      busyboxTree(
        folder("workspace/", { mode: 0o2555 }),
        file("workspace/there", "x"),
        folder("home/"),
        folder("home/user/"),
      ),
    )
    await using sandbox = await start(name)
    const seen = "stat -c '%u:%g %a' /workspace /home/user /workspace/there; touch /workspace/x ~/x && echo ok"
    expect(await text(sandbox, seen)).toBe("1000:1000 2755\n1000:1000 755\n0:0 644\nok\n")
  })

  test("whiteouts and opaque folders hide what is below, owners and modes are those of the archive", async () => {
    const name = await imageOf(
      busyboxTree(
        folder("data/"),
        file("data/gone", "old"),
        file("data/stays", "stays", { uid: 1000, gid: 1000, mode: 0o640 }),
        folder("data/sub/"),
        file("data/sub/below", "below"),
        folder("opaque/"),
        file("opaque/below", "below"),
        folder("replaced/"),
        file("replaced/below", "below"),
      ),
      [
        folder("data/"),
        file("data/.wh.gone"),
        file("data/.wh.sub"),
        folder("opaque/"),
        file("opaque/.wh..wh..opq"),
        file("opaque/new", "new"),
        file(".wh.replaced"),
        folder("replaced/", { uid: 1000, gid: 1000 }),
        file("replaced/new", "new"),
      ],
    )
    await using sandbox = await start(name)
    const seen = await text(sandbox, "ls -A /data /opaque /replaced; stat -c '%u:%g %a' /data/stays /replaced")
    expect(seen).toBe("/data:\nstays\n\n/opaque:\nnew\n\n/replaced:\nnew\n1000:1000 640\n1000:1000 755\n")
    // And again from above: what the sandbox makes in their place is its own.
    expect(await text(sandbox, "mkdir /data/sub && ls -A /data/sub && echo made", { user: "root" })).toBe("made\n")
  })

  test("an image whose /dev, /proc, /sys, /etc, /run, /tmp or /workspace leads elsewhere is refused by name", async () => {
    for (const place of ["dev", "proc", "sys", "etc", "run", "tmp", "workspace", "usr", "home"]) {
      const tree = busyboxTree().filter(({ name }) => !name.startsWith(`${place}/`))
      for (const target of ["/root", "../../../root", "bin"]) {
        await expect(imageOf([...tree, symlink(place, target)])).rejects.toThrow(`/${place} of the image is a link`)
      }
      await expect(imageOf([...tree, file(place, "x")])).rejects.toThrow(`/${place} of the image is not a folder`)
    }
    expect(images.list().filter(({ names }) => names.length === 0)).toEqual([])
  })

  test("links in /etc that a sandbox binds over are replaced", async () => {
    const name = await imageOf(
      busyboxTree(
        symlink("etc/resolv.conf", "/run/systemd/resolve/stub-resolv.conf"),
        symlink("etc/hosts", "/proc/1/environ"),
      ),
    )
    await using sandbox = await start(name)
    expect(await text(sandbox, "cat /etc/hosts")).toContain("localhost")
    expect(await text(sandbox, "stat -c %F /etc/resolv.conf")).toMatch(/^regular/)
  })

  test("a read-only root works, too", async () => {
    const image = await images.use("busybox", "read-only")
    await using sandbox = await fixture.use({ image, isRootReadOnly: true })
    expect(await text(sandbox, "touch /etc/x 2>/dev/null || echo read-only; touch /home/user/x && echo ok")).toBe(
      "read-only\nok\n",
    )
  })

  test("setuid and file capabilities are gone, sticky and set-group-id of folders stay", async () => {
    const name = await imageOf(
      busyboxTree(
        file("bin/su", "x", { mode: 0o6755, xattrs: new Map([["security.capability", Buffer.alloc(20)]]) }),
        folder("shared/", { mode: 0o3775, gid: 1000 }),
      ),
    )
    await using sandbox = await start(name)
    expect(await text(sandbox, "stat -c %a /bin/su /shared")).toBe("755\n3775\n")
  })
})
