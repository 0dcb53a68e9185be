import { Fault } from "@warren/base/fault.ts"
import { describe, expect, it } from "vitest"
import { lackOf } from "../driver.ts"
import { Files, readAll } from "../init/files.ts"
import { sh, type World } from "./world.ts"

/** The files of a sandbox, from outside. */
export function describeFiles(world: World): void {
  describe("files", () => {
    it("are read, written, listed, moved, watched and removed", async () => {
      const { driver } = world
      const files = new Files(await world.start())
      const bytes = Buffer.from([0, 255, 1, 254, 10, 13, 0xc3, 0x28])
      expect(await files.write("/workspace/a/b.bin", bytes, { parents: true, mode: 0o640 })).toBe(bytes.length)
      expect(await readAll(files.read("/workspace/a/b.bin"), 1_000)).toEqual(bytes)
      expect(await readAll(files.read("/workspace/a/b.bin", { offset: 2, limit: 3 }), 1_000)).toEqual(
        bytes.subarray(2, 5),
      )
      const { uid, ...entry } = await files.stat("/workspace/a/b.bin")
      expect(entry).toMatchObject({ type: "file", size: 8, mode: 0o640 })
      if (lackOf(driver, "namespaces") === undefined) expect(uid).toBe(1000)
      const changes = await files.watch("/workspace", { recursive: true })
      await files.move("/workspace/a/b.bin", "/workspace/c.bin")
      for await (const change of changes) if (change.path.includes("c.bin") || change.to?.includes("c.bin")) break
      const { entries } = await files.list("/workspace", { depth: 2 })
      expect(entries.map((entry) => entry.name ?? "").toSorted((a, b) => a.localeCompare(b))).toEqual(["a", "c.bin"])
      await files.remove("/workspace/a", { recursive: true })
      const missing = { code: "not_found", message: "/workspace/a: No such file or directory" }
      await expect(files.stat("/workspace/a")).rejects.toMatchObject(missing)
      await expect(files.move("/workspace/a", "/workspace/b")).rejects.toMatchObject(missing)
    })

    it("lead nowhere outside", async () => {
      const sandbox = await world.start()
      const files = new Files(sandbox)
      await sh(sandbox, "ln -s /etc/shadow shadow; ln -s /proc/1/root/etc up; mkfifo fifo", { cwd: "/workspace" })
      await expect(readAll(files.read("/workspace/shadow"), 1_000)).rejects.toBeInstanceOf(Fault)
      await expect(readAll(files.read("/workspace/up/shadow"), 1_000)).rejects.toBeInstanceOf(Fault)
      await expect(readAll(files.read("/workspace/fifo"), 1_000)).rejects.toMatchObject({ code: "invalid" })
      await expect(files.write("/etc/passwd", Buffer.from("x"))).rejects.toMatchObject({ code: "forbidden" })
    })

    it("travel whole when they are large", async () => {
      const files = new Files(await world.start())
      const large = Buffer.alloc(20_000_000, "warren")
      await files.write("/workspace/large", large)
      expect((await readAll(files.read("/workspace/large"), large.length)).equals(large)).toBe(true)
    })
  })
}
