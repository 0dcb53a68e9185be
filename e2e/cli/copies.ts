import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { expect, test } from "vitest"
import type { CliWorld } from "./world.ts"

/** Files that go in and come out. */
export function copies(world: CliWorld): void {
  const { said, session } = world

  function tree(name: string): string {
    const path = world.folder.at(name)
    mkdirSync(`${path}/deep/er`, { recursive: true })
    writeFileSync(`${path}/a file`, "a")
    writeFileSync(`${path}/deep/tool`, "#!/bin/sh\n")
    writeFileSync(`${path}/deep/er/bytes`, randomBytes(700_000))
    writeFileSync(`${path}/empty`, "")
    chmodSync(`${path}/a file`, 0o640)
    chmodSync(`${path}/deep/tool`, 0o755)
    chmodSync(`${path}/deep`, 0o750)
    symlinkSync("../a file", `${path}/deep/link`)
    return path
  }

  const listing = (path: string): string =>
    execFileSync(
      "sh",
      ["-c", "cd \"$0\" && find . -printf '%p %y %m %l\\n' | sort && find . -type f -exec sha256sum {} +| sort", path],
      {
        encoding: "utf8",
      },
    )

  test.each([
    ["a session", "copied:/home/user/tree"],
    ["a workspace", "@shelf:tree"],
  ])("a folder goes into %s and comes back the same: modes, links, bytes", async (_, inside) => {
    await using _session = await session("copied", "--workspace", "shelf")
    const source = tree(`source-${inside.length}`)
    await said("cp", source, inside)
    const back = world.folder.at(`back-${inside.length}`)
    await said("cp", inside, back)
    expect(listing(back)).toBe(listing(source))
  })

  test("goes into a folder that exists, as cp does, and through pipes", async () => {
    await using _ = await session("piped")
    writeFileSync(world.folder.at("note"), "note\n")
    await said("cp", world.folder.at("note"), "piped:/tmp")
    expect(await said("cp", "piped:/tmp/note", "-")).toBe("note\n")
    const { code } = await world.cli.run(["cp", "-", "piped:/tmp/deep/er/x"], "from a pipe")
    expect(code).toBe(0)
    await said("cp", "piped:/tmp/deep/er/x", world.folder.path)
    expect(readFileSync(world.folder.at("x"), "utf8")).toBe("from a pipe")
    expect((await world.cli.run(["cp", "piped:/none", world.folder.path])).code).toBe(3)
    expect((await world.cli.run(["cp", world.folder.at("none"), "piped:/tmp/"])).code).toBe(3)
  })

  test("what comes out cannot write anywhere else, and nothing becomes setuid", async () => {
    await using _ = await session("hostile")
    const target = world.folder.at("target")
    mkdirSync(world.folder.at("victim"))
    const build = (script: string) => said("exec", "hostile", "--", "sh", "-c", `cd ~; ${script}`)
    await build(
      `mkdir box; ln -s ${world.folder.at("victim")} box/dir; echo x > box/suid; chmod 4755 box/suid; mkfifo box/pipe`,
    )
    const first = await world.cli.run(["cp", "hostile:/home/user/box", target])
    expect(first).toMatchObject({ code: 0, stderr: "left out: /home/user/box/pipe (fifo)\n" })
    expect(readlinkSync(`${target}/dir`)).toBe(world.folder.at("victim"))
    expect(lstatSync(`${target}/suid`).mode & 0o7777).toBe(0o755)
    // Now the link is a folder inside; the copy must not follow the link it made here.
    await build("rm box/dir; mkdir box/dir; echo evil > box/dir/file")
    rmSync(`${target}/pipe`, { force: true })
    const again = await world.cli.run(["cp", "hostile:/home/user/box", world.folder.path])
    expect(again.code).toBe(0)
    const over = await world.cli.run(["cp", "hostile:/home/user/box/.", target])
    expect(over.code).toBe(4)
    expect(execFileSync("ls", [world.folder.at("victim")], { encoding: "utf8" })).toBe("")
  })
}
