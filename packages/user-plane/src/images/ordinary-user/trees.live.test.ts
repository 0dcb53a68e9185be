import { execFileSync } from "node:child_process"
import { lstatSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { hostImage } from "@warren/drivers/oci/host-image.ts"
import { never, sh, text } from "@warren/drivers/oci/testing/fixture.ts"
import { describe, expect, test } from "vitest"
import { isRoot, ordinaryUser, own, owned } from "../testing/ordinary-user.ts"

/** Run by `rootless.live.test.ts`, as somebody who is not root. */
describe.skipIf(isRoot)("an ordinary user's images", () => {
  const user = ordinaryUser()

  test("a plain tree runs with its owners, links, modes and attributes; set-user-id is gone", async () => {
    await user.rootfs("tree", ...owned)
    await using sandbox = await user.start("tree")
    const files = "/bin/busybox /data /data/mine /data/hidden /data/hidden/web /bin/su /data/noted /far /shared /link"
    expect(await text(sandbox, `stat -c '%u:%g %a %h' ${files}`, { user: "root" })).toBe(
      "0:0 755 1\n1000:1000 750 3\n1000:1000 600 2\n33:7 700 2\n33:33 400 1\n0:0 755 1\n65534:65534 644 1\n" +
        "65534:65534 644 1\n0:1000 3775 2\n0:0 777 1\n",
    )
    expect(await text(sandbox, "id -u; cat /data/mine; cat /data/hidden/web 2>/dev/null || echo no")).toBe(
      "1000\nmineno\n",
    )
    const [top = ""] = (await user.images.use("tree", "test")).layers.slice(-1)
    // We may not even look at it; whoever keeps it may.
    expect(() => readdirSync(join(top, "data"))).toThrow(/EACCES/)
    expect(lstatSync(top).uid).not.toBe(own)
    const [command, ...args] = user.driver.asKeeper?.([
      "getfattr",
      "--only-values",
      "-n",
      "user.note",
      join(top, "data/noted"),
    ]) ?? [""]
    expect(execFileSync(command, args).toString()).toBe("kept")
  })

  test("root inside edits, gives away and takes away what the image has; the user does not, and the image stays", async () => {
    await user.rootfs("tree", ...owned)
    await using sandbox = await user.start("tree")
    const changes =
      "echo more >> /data/hidden/web && busybox chown 5:6 /data/mine && rm /etc/passwd && busybox chmod 700 /bin/su"
    const refused = changes.replaceAll("&&", ";").replaceAll("busybox ", "/bin/busybox ")
    expect((await sh(sandbox, refused)).stderr.toString().trim().split("\n")).toHaveLength(4)
    expect(await text(sandbox, `${changes} && echo done`, { user: "root" })).toBe("done\n")
    expect(
      await text(sandbox, "cat /data/hidden/web; stat -c %u:%g /data/same /data/mine", { user: "root" }),
    ).toContain("webmore\n")
    await using other = await user.start("tree")
    expect(
      await text(other, "cat /data/hidden/web; stat -c %u:%g /data/mine; test -f /etc/passwd && echo there", {
        user: "root",
      }),
    ).toBe("web1000:1000\nthere\n")
  })

  test("says that sandboxes of images share their ids, and nothing of files that cannot be changed", async () => {
    await user.rootfs("tree", ...owned)
    await using one = await user.start("tree")
    await using two = await user.start("tree", { profile: "strict" })
    const [first, second] = [await one.posture(), await two.posture()]
    expect(first.uidMap).toEqual(second.uidMap)
    for (const { degraded } of [first, second]) {
      expect(degraded).toContainEqual(expect.stringMatching(/also those of other sandboxes/))
      expect(degraded).not.toContainEqual(expect.stringMatching(/nobody's/))
    }
    const host = await user.create(await hostImage(user.temp.at("host")))
    const posture = await (await user.driver.start(host, never)).posture()
    const isAlone = !posture.degraded.some((words) => words.includes("also those of other sandboxes"))
    // Where there are ids for one sandbox only, all share them.
    expect(posture.uidMap[0]?.outside === first.uidMap[0]?.outside).toBe(!isAlone)
    await user.driver.destroy(host)
  })
})
