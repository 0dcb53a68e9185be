import { execFile } from "node:child_process"
import { mkdir, readFile, stat, writeFile } from "node:fs/promises"
import { promisify } from "node:util"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { Provision, type ProvisionProgress } from "@warren/protocol/user-plane/provision.ts"
import { expect, test } from "vitest"
import { HostWorkbench } from "../../git/testing/host-workbench.ts"
import { provision } from "./provisioner.ts"

const run = promisify(execFile)

/** A remote with two branches, a tag and a commit that only its number leads to; and a home to work in. */
class Remote implements AsyncDisposable {
  readonly url: string
  readonly bench: HostWorkbench
  readonly told: ProvisionProgress[] = []
  readonly folder: TempFolder
  hidden = ""

  private constructor(folder: TempFolder, hasWorkspace: boolean) {
    this.folder = folder
    this.url = `file://${folder.at("served.git")}`
    this.bench = new HostWorkbench(folder.at("home"), hasWorkspace ? folder.at("work") : undefined)
  }

  static async make({ hasWorkspace = true } = {}): Promise<Remote> {
    const remote = new Remote(await TempFolder.make(), hasWorkspace)
    const { folder } = remote
    for (const name of ["home", "work", "made"]) await mkdir(folder.at(name))
    const made = remote.git("made")
    await made("init", "-q", "-b", "trunk")
    await remote.commit("first")
    await made("tag", "v1")
    await made("checkout", "-q", "-b", "feature")
    await remote.commit("on feature")
    await made("checkout", "-q", "--detach")
    await remote.commit("hidden")
    remote.hidden = (await made("rev-parse", "HEAD")).stdout.trim()
    await made("checkout", "-q", "trunk")
    await made("clone", "-q", "--bare", folder.at("made"), folder.at("served.git"))
    await made("push", "-q", folder.at("served.git"), `${remote.hidden}:refs/keep/it`)
    await remote.git("served.git")("config", "uploadpack.allowAnySHA1InWant", "true")
    return remote
  }

  git(where: string): (...args: string[]) => Promise<{ stdout: string }> {
    const who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    const env = { PATH: process.env["PATH"], HOME: this.folder.path, GIT_CONFIG_NOSYSTEM: "1" }
    return (...args) => run("git", ["-C", this.folder.at(where), ...who, ...args], { env })
  }

  async commit(text: string): Promise<void> {
    await writeFile(this.folder.at("made", "file"), `${text}\n`)
    await this.git("made")("add", "file")
    await this.git("made")("commit", "-q", "-m", text)
  }

  async publish(branch: string): Promise<void> {
    await this.git("made")("push", "-q", this.folder.at("served.git"), branch)
  }

  ready(wishes: Provision, signal = new AbortController().signal) {
    return provision(
      Provision.parse({ repo: this.url, ...wishes }),
      this.bench,
      (one) => void this.told.push(one),
      signal,
    )
  }

  steps(): string[] {
    return this.told
      .splice(0)
      .flatMap(({ step, state, percent }) => (percent === undefined ? [`${step} ${state}`] : []))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.folder[Symbol.asyncDispose]()
  }
}

test("the remote's main branch is brought and tracked, each step is told, and who commits is known", async () => {
  await using remote = await Remote.make()
  const found = await remote.ready({})
  expect(found).toMatchObject({ folder: remote.folder.at("work"), branch: "trunk" })
  expect(await readFile(remote.folder.at("work", "file"), "utf8")).toBe("first\n")
  const upstream = await remote.git("work")("rev-parse", "--abbrev-ref", "@{upstream}")
  expect(upstream.stdout.trim()).toBe("origin/trunk")
  expect(remote.steps()).toEqual([
    ...["identity running", "identity done", "clone running", "clone done", "checkout running", "checkout done"],
  ])
  expect(await readFile(remote.folder.at("home", ".gitconfig"), "utf8")).toContain("agent@localhost")
})

test("a branch the remote has is tracked, one that it has not is new, from a ref if one is said", async () => {
  await using remote = await Remote.make({ hasWorkspace: false })
  const at = "home/served"
  expect(await remote.ready({ branch: "feature" })).toMatchObject({ branch: "feature" })
  expect(await readFile(remote.folder.at(at, "file"), "utf8")).toBe("on feature\n")
  expect((await remote.git(at)("rev-parse", "--abbrev-ref", "feature@{upstream}")).stdout.trim()).toBe("origin/feature")
  expect(await remote.ready({ branch: "mine", ref: "v1" })).toMatchObject({ branch: "mine" })
  expect(await readFile(remote.folder.at(at, "file"), "utf8")).toBe("first\n")
  await expect(remote.git(at)("rev-parse", "mine@{upstream}")).rejects.toThrow()
})

test("a tag and a commit that no branch has are checked out without a branch", async () => {
  await using remote = await Remote.make()
  const tagged = await remote.ready({ ref: "v1" })
  expect(tagged.branch).toBeUndefined()
  expect(await remote.ready({ ref: remote.hidden })).toMatchObject({ commit: remote.hidden })
  await expect(remote.ready({ ref: "nothing" })).rejects.toMatchObject({ code: "not_found", subject: "step:fetch" })
  await expect(remote.ready({ branch: "new", ref: "v9" })).rejects.toMatchObject({
    message: expect.stringMatching(/^fetch: /),
  })
})

test("a workspace that was used before is caught up where nobody changed it, and otherwise stays", async () => {
  await using remote = await Remote.make()
  await remote.ready({})
  remote.steps()
  await remote.commit("second")
  await remote.publish("trunk")
  await remote.ready({})
  expect(await readFile(remote.folder.at("work", "file"), "utf8")).toBe("second\n")
  expect(remote.steps()).toContain("fetch done")

  await remote.commit("third")
  await remote.publish("trunk")
  await writeFile(remote.folder.at("work", "file"), "mine\n")
  await writeFile(remote.folder.at("work", "new"), "new\n")
  await remote.ready({})
  expect(await readFile(remote.folder.at("work", "file"), "utf8")).toBe("mine\n")
  expect(remote.told.find(({ step, state }) => step === "checkout" && state === "done")?.detail).toContain("1 behind")
  // The other branch would overwrite it: git refuses, and so do we.
  await expect(remote.ready({ branch: "feature" })).rejects.toMatchObject({
    code: "conflict",
    subject: "step:checkout",
  })
  expect(await readFile(remote.folder.at("work", "file"), "utf8")).toBe("mine\n")
  expect(await readFile(remote.folder.at("work", "new"), "utf8")).toBe("new\n")
})

test("what is there and is something else is never touched", async () => {
  await using remote = await Remote.make()
  await writeFile(remote.folder.at("work", "notes"), "x")
  const beside = await remote.ready({})
  expect(beside.folder).toBe(remote.folder.at("work", "served"))
  await writeFile(
    remote.folder.at("work", "served", ".git", "config"),
    '[remote "origin"]\n\turl = https://e.com/a/b\n',
  )
  await expect(remote.ready({})).rejects.toMatchObject({ code: "conflict", message: expect.stringMatching(/^clone: /) })
  await expect(remote.ready({ folder: "../away" })).rejects.toMatchObject({ code: "invalid" })
})

test("killed half-way it goes on; cancelled it stops, and leaves nothing that could not be gone on with", async () => {
  await using remote = await Remote.make()
  const stop = new AbortController()
  const tell = (one: ProvisionProgress): void => {
    remote.told.push(one)
    if (one.step === "clone") stop.abort(new Error("enough"))
  }
  await expect(provision({ repo: remote.url }, remote.bench, tell, stop.signal)).rejects.toThrow("enough")
  expect(remote.steps().at(-1)).toBe("clone failed")
  // As after a kill: the folder is there, and half of what belongs in it.
  await run("git", ["init", "-q", remote.folder.at("work")])
  expect(await remote.ready({})).toMatchObject({ branch: "trunk" })
})

test("persona, instructions and attachments lie in the home, outside the repository, and are replaced as a whole", async () => {
  await using remote = await Remote.make()
  const data = Buffer.from([0, 255, 1]).toString("base64")
  const first = await remote.ready({
    ...{ persona: "You are kind.", instructions: [{ name: "a.md", text: "Do." }] },
    attachments: [
      { filename: "p.png", mime: "image/png", data },
      { filename: "p.png", mime: "image/png", data },
    ],
  })
  expect(first.persona).toBe(remote.folder.at("home", ".warren", "agent", "persona.md"))
  expect(await readFile(first.instructions[0] ?? "", "utf8")).toBe("Do.")
  expect(first.attachments).toHaveLength(2)
  expect(await readFile(first.attachments[1] ?? "")).toEqual(Buffer.from([0, 255, 1]))
  expect((await remote.git("work")("status", "--porcelain")).stdout).toBe("")
  const second = await remote.ready({ instructions: [{ name: "b.md", text: "Other." }] })
  expect(second.persona).toBeUndefined()
  await expect(stat(first.persona ?? "")).rejects.toThrow()
  await expect(stat(first.instructions[0] ?? "")).rejects.toThrow()
})

test("an empty remote can be begun on a branch, and an identity that is said is used", async () => {
  await using remote = await Remote.make()
  await remote.git("made")("init", "-q", "--bare", remote.folder.at("none.git"))
  const repo = `file://${remote.folder.at("none.git")}`
  const found = await remote.ready({ repo, branch: "start", identity: { name: "Ada", email: "ada@example.com" } })
  expect(found).toEqual({ folder: remote.folder.at("work"), branch: "start", instructions: [], attachments: [] })
  expect(await readFile(remote.folder.at("home", ".gitconfig"), "utf8")).toMatch(/Ada[^]*ada@example.com/)
})

test("nonsense is refused by name", async () => {
  await using remote = await Remote.make()
  for (const repo of [
    "--upload-pack=x",
    "ext::sh -c x",
    "https://tok@github.com/a/b",
    "ftp://x/y",
    "a b/c",
    "https://h/..",
  ])
    await expect(remote.ready({ repo })).rejects.toMatchObject({ code: "invalid", subject: "step:clone" })
  for (const branch of ["-x", "a..b", "a@{1}", "x.lock", "/a", "a/", "a b", ""])
    expect(Provision.safeParse({ branch }).success, branch).toBe(false)
  await expect(remote.ready({ repo: remote.folder.at("nowhere") })).rejects.toMatchObject({ code: "not_found" })
})
