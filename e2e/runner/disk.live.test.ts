import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { describe, expect, it } from "vitest"
import { Home } from "./home.ts"
import { lastingLeaks } from "./machine.ts"
import { Runner } from "./runner.ts"
import type { Talk } from "./talk.ts"

const diskBytes = 1536 * 1024 * 1024
const run = (program: string, ...args: string[]): string => execFileSync(program, args, { encoding: "utf8" })

/** A file system of its own, small enough to be filled. */
class SmallDisk implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "wd-"))
  readonly home: Home

  constructor() {
    const image = join(this.#folder, "image")
    writeFileSync(image, "")
    truncateSync(image, diskBytes)
    run("mkfs.ext4", "-q", "-m", "0", image)
    const mount = join(this.#folder, "m")
    mkdirSync(mount)
    run("mount", "-o", "loop", image, mount)
    mkdirSync(join(mount, "h"))
    this.home = new Home(join(mount, "h"))
  }

  /** To the last byte. */
  fill(): void {
    try {
      run("sh", "-c", `cat /dev/zero > ${this.#ballast} 2>/dev/null`)
    } catch {
      // That is what it is for.
    }
  }

  makeRoom(): void {
    rmSync(this.#ballast, { force: true })
  }

  get #ballast(): string {
    return join(this.#folder, "m", "ballast")
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.makeRoom()
    await this.home[Symbol.asyncDispose]()
    // Lazily: a launcher of a test beside this one has a copy of the mount for as long as it lives.
    run("umount", "-l", join(this.#folder, "m"))
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** The fault a call ends with; undefined when it succeeds. */
async function faultOf(call: Promise<unknown>): Promise<string | undefined> {
  return call.then(
    () => undefined,
    (failure: unknown) => (failure instanceof Fault ? failure.code : `not a fault: ${String(failure)}`),
  )
}

describe.skipIf(process.getuid?.() !== 0)("a runner whose disk is full", () => {
  it("refuses with words, spoils nothing, and works again when there is room", { timeout: 240_000 }, async () => {
    await using disk = new SmallDisk()
    const { home } = disk
    const id = await (async () => {
      await using runner = await Runner.start(home)
      const { talk } = runner
      const session = await talk.call("session.create", { name: "old" })
      await talk.write(session.id, "/home/user/note", "kept")
      disk.fill()
      await useAll(talk)
      disk.makeRoom()
      await works(talk, session.id)
      disk.fill()
      return session.id
    })()
    // One that starts on a full disk either refuses or works with what there is; it takes nothing away.
    const begun = await faultOf(Runner.start(home).then((runner) => runner.kill()))
    console.log(
      `disk: a runner on a full disk ${begun === undefined ? "starts" : `does not start (${begun.slice(0, 200)})`}`,
    )
    disk.makeRoom()
    await using again = await Runner.start(home)
    await works(again.talk, id)
    expect(await lastingLeaks(home)).toEqual([])
  })

  /** Everything that needs room, while there is none. */
  async function useAll(talk: Talk): Promise<void> {
    const allowed = [undefined, "limit", "unavailable"]
    const outcomes = {
      create: await faultOf(talk.call("session.create", { name: "new", network: { mode: "none" } })),
      fill: (await talk.run("old", "cat /dev/zero > ~/full")).exitCode,
      create2: await faultOf(talk.call("session.create", { name: "new2" })),
      write: await faultOf(talk.write("old", "/home/user/big", "x".repeat(4_000_000))),
      snapshot: await faultOf(talk.call("snapshot.create", { session: "old" })),
      fork: await faultOf(talk.call("session.fork", { id: "old" })),
      hibernate: await faultOf(talk.call("session.hibernate", { id: "old" })),
    }
    console.log(`disk: ${JSON.stringify(outcomes)}`)
    for (const [what, code] of Object.entries(outcomes)) if (what !== "fill") expect(allowed, what).toContain(code)
    expect(outcomes.create2).toBe("limit")
    expect(outcomes.write).toBe("limit")
    expect(await talk.call("health.check", {})).toMatchObject({ user: "root" })
    expect(await talk.read("old", "/home/user/note")).toBe("kept")
    await talk.run("old", "rm -f ~/full ~/big")
  }

  async function works(talk: Talk, id: string): Promise<void> {
    expect(await talk.read(id, "/home/user/note")).toBe("kept")
    // One whose making failed may still be written down; the next who asks for it finds that it is gone.
    for (const { id: other, name } of await talk.sessions())
      if (name !== "old")
        expect([undefined, "not_found"]).toContain(await faultOf(talk.call("session.delete", { id: other })))
    for (const snapshot of await talk.snapshots()) await talk.call("snapshot.delete", { id: snapshot.id })
    // What was removed inside comes back with the file system's next commit.
    await expect
      .poll(() => faultOf(talk.call("session.create", { name: "after" })), { timeout: 30_000 })
      .toBeUndefined()
    await talk.write("after", "/home/user/note", "new")
    expect(await talk.read("after", "/home/user/note")).toBe("new")
    expect(await talk.call("session.hibernate", { id: "after" })).toMatchObject({ state: "hibernated" })
    expect(await talk.read("after", "/home/user/note")).toBe("new")
    await talk.call("session.delete", { id: "after" })
  }
})
