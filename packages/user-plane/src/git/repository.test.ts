import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdir, rename, rm, writeFile } from "node:fs/promises"
import { promisify } from "node:util"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { parseChanges } from "./changed-files.ts"
import { changedFiles, diffOf } from "./diff.ts"
import { Repository } from "./repository.ts"
import { HostWorkbench } from "./testing/host-workbench.ts"

const run = promisify(execFile)
const { signal } = new AbortController()

/** A clone of a remote with one commit, on a branch of its own. */
class Work implements AsyncDisposable {
  readonly repository: Repository
  readonly bench: HostWorkbench
  readonly #folder: TempFolder

  private constructor(folder: TempFolder) {
    this.#folder = folder
    this.bench = new HostWorkbench(folder.path)
    this.repository = new Repository(this.bench, folder.at("work"))
  }

  static async make(): Promise<Work> {
    const folder = await TempFolder.make()
    const work = new Work(folder)
    await mkdir(folder.at("work"))
    await work.git("init", "-q", "-b", "main")
    await work.write("kept", "1\n2\n3\n")
    await work.write("old name", Array.from({ length: 50 }, (_, line) => `line ${line}\n`).join(""))
    await work.write("gone", "x\n")
    await work.commit("first")
    await run("git", ["clone", "-q", "--bare", folder.at("work"), folder.at("remote.git")])
    await work.git("remote", "add", "origin", `file://${folder.at("remote.git")}`)
    await work.git("fetch", "-q", "origin")
    await work.git("remote", "set-head", "origin", "--auto")
    await work.git("checkout", "-q", "-b", "mine", "--track", "origin/main")
    return work
  }

  at(name: string): string {
    return this.#folder.at("work", name)
  }

  async git(...args: string[]): Promise<string> {
    const who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    const env = { PATH: process.env["PATH"], HOME: this.#folder.path, GIT_CONFIG_NOSYSTEM: "1" }
    return (await run("git", ["-C", this.#folder.at("work"), ...who, ...args], { env })).stdout
  }

  write(name: string, text: string): Promise<void> {
    return writeFile(this.at(name), text)
  }

  async commit(text: string): Promise<void> {
    await this.git("add", "-A")
    await this.git("commit", "-q", "-m", text)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#folder[Symbol.asyncDispose]()
  }
}

describe("a repository in a session", () => {
  test("says its branch, what it follows and how far it is, and whether something is not committed", async () => {
    await using work = await Work.make()
    const { repository } = work
    expect(await repository.state(signal)).toMatchObject({
      ...{
        isRepository: true,
        branch: "mine",
        upstream: "origin/main",
        ahead: 0,
        behind: 0,
        isDirty: false,
        changes: 0,
      },
      remote: expect.stringMatching(/^file:/),
    })
    await work.write("kept", "other\n")
    await work.commit("second")
    await work.write("new", "x")
    expect(await repository.state(signal)).toMatchObject({ ahead: 1, isDirty: true, changes: 1 })
    await work.git("checkout", "-q", "--detach")
    expect((await repository.state(signal)).branch).toBeUndefined()
    await work.git("remote", "set-url", "origin", "https://me:token@example.com/a/b.git")
    expect((await repository.state(signal)).remote).toBe("https://example.com/a/b.git")
    await rm(work.at(".git"), { recursive: true })
    expect(await repository.state(signal)).toMatchObject({ isRepository: false, isDirty: false })
    await expect(changedFiles(repository, "head", signal)).rejects.toMatchObject({ code: "not_found" })
  })

  test("lists what changed with new, renamed and strangely named files, and leaves its index alone", async () => {
    await using work = await Work.make()
    await work.write("kept", "1\ntwo\n3\n4\n")
    await rename(work.at("old name"), work.at("new\tname"))
    await rm(work.at("gone"))
    await work.write("ü — :(top)x", "hello\n")
    await writeFile(work.at("bytes"), Buffer.from([0, 1, 2, 0]))
    const before = await work.git("status", "--porcelain")
    const { files, isCut } = await changedFiles(work.repository, "head", signal)
    expect(isCut).toBe(false)
    expect(files).toHaveLength(5)
    expect(files).toContainEqual({ path: "kept", status: "modified", additions: 2, deletions: 1 })
    expect(files).toContainEqual({ path: "gone", status: "deleted", additions: 0, deletions: 1 })
    expect(files).toContainEqual({ path: "ü — :(top)x", status: "added", additions: 1, deletions: 0 })
    expect(files).toContainEqual({ path: "bytes", status: "added" })
    expect(files).toContainEqual(expect.objectContaining({ path: "new\tname", status: "renamed", from: "old name" }))
    expect(await work.git("status", "--porcelain")).toBe(before)
    const ours = work.bench.ran.flat().filter((word) => word.startsWith("/tmp/.warren-index-"))
    expect(ours.length).toBeGreaterThan(0)
    expect(ours.filter((path) => existsSync(path))).toEqual([])
  })

  test("shows what changed as git writes it, of one path, and since it left the remote's main branch", async () => {
    await using work = await Work.make()
    await work.write("kept", "committed\n")
    await work.commit("second")
    await work.write("new*", "new\n")
    await work.write("newer", "newer\n")
    const { repository } = work
    const head = await diffOf(repository, { against: "head" }, signal)
    expect(head.text).toContain("+new\n")
    expect(head.text).not.toContain("+committed")
    const base = await diffOf(repository, { against: "base" }, signal)
    expect(base.text).toContain("+committed")
    const one = await diffOf(repository, { against: "head", path: "new*" }, signal)
    expect(one.text).toContain("+new\n")
    expect(one.text).not.toContain("+newer")
    const applied = await TempFolder.make()
    await writeFile(applied.at("patch"), base.text)
    await work.git("stash", "-qu")
    await work.git("checkout", "-q", "-b", "check", "origin/main")
    await work.git("apply", applied.at("patch"))
    expect(await work.git("status", "--porcelain", "-uall")).toBe(" M kept\n?? new*\n?? newer\n")
    await applied[Symbol.asyncDispose]()
    await expect(diffOf(repository, { against: "nothing" }, signal)).rejects.toMatchObject({ code: "not_found" })
  })

  test("without a commit is compared with nothing at all", async () => {
    await using work = await Work.make()
    await rm(work.at(".git"), { recursive: true })
    await work.git("init", "-q")
    expect((await changedFiles(work.repository, "head", signal)).files.map(({ status }) => status)).toEqual(
      Array.from({ length: 3 }, () => "added"),
    )
    await expect(diffOf(work.repository, { against: "base" }, signal)).rejects.toMatchObject({ code: "not_found" })
  })
})

test("whatever git says, cut off anywhere, is read without harm", () => {
  const said =
    ":100644 100644 a1 b2 M\0kept\0:000000 100644 00 b2 A\0new\0:100644 100644 a b R097\0o\0n\x001\t2\tkept\0-\t-\tnew\x001\t1\t\0o\0n\0"
  fc.assert(
    fc.property(fc.nat(said.length), (length) => {
      for (const { path } of parseChanges(said.slice(0, length))) expect(["kept", "new", "n"]).toContain(path)
    }),
  )
  fc.assert(fc.property(fc.string(), (text) => void parseChanges(text)))
  expect(parseChanges(said)).toEqual([
    { path: "kept", status: "modified", additions: 1, deletions: 2 },
    { path: "new", status: "added" },
    { path: "n", status: "renamed", from: "o", additions: 1, deletions: 1 },
  ])
})
