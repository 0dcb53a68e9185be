import { execFile } from "node:child_process"
import { mkdir, writeFile } from "node:fs/promises"
import { promisify } from "node:util"
import { Scope } from "@warren/base/scope.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { gitServer } from "@warren/user-plane/broker/testing/git-server.ts"
import { Loopback } from "@warren/user-plane/egress/testing/egress-system.ts"
import { ForgeServer } from "@warren/user-plane/git/testing/forge-server.ts"
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import { Home } from "../runner/home.ts"
import { Runner } from "../runner/runner.ts"
import type { Talk } from "../runner/talk.ts"

// Many processes on a machine that others use, too.
vi.setConfig({ testTimeout: 180_000 })

const run = promisify(execFile)
const key = "ghp_real-KEY-7f3a9c-do-not-leak"
const scripted = { adapter: "scripted" } as const
const keys = [{ scope: "git:write" as const, destination: "github.com/acme/widgets" }]
const written = (...steps: object[]): string => `[[script:${JSON.stringify({ steps })}]]`
const scope = new Scope()
let home: Home
let runner: Runner
let settings: Record<string, string>
let forge: ForgeServer
let hangs = 0

beforeAll(async () => {
  const folder = scope.use(await TempFolder.make())
  await mkdir(folder.at("served", "acme"), { recursive: true })
  const bare = folder.at("served", "acme", "widgets.git")
  const made = folder.at("made")
  const git = (...args: string[]) => run("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args])
  await git("init", "-q", "-b", "main", made)
  await writeFile(`${made}/README.md`, "# Widgets\n")
  await git("-C", made, "add", "-A")
  await git("-C", made, "commit", "-q", "-m", "first")
  await git("-C", made, "branch", "feature")
  await git("clone", "-q", "--bare", made, bare)
  await git("-C", bare, "config", "http.receivepack", "true")
  const server = scope.use(await gitServer(folder.at("served"), key, []))
  const silent = scope.use(await Loopback.http(() => void hangs++))
  forge = scope.use(await ForgeServer.start("acme/widgets", key))
  home = new Home()
  settings = {
    WARREN_GIT_URLS: `github.com=http://127.0.0.1:${server.port} silent.example=http://127.0.0.1:${silent.port}`,
    WARREN_FORGE_URLS: `github.com=${forge.url}`,
  }
  runner = await Runner.start(home, settings)
  await runner.talk.call("secrets.set", { name: "GIT_TOKEN", value: key })
})
afterAll(async () => {
  for (const { id } of await runner.talk.sessions()) await runner.talk.call("session.delete", { id })
  await runner.stop()
  await home[Symbol.asyncDispose]()
  await scope.close()
})

/** Everything the feed tells until the prompt is done. */
async function turn(talk: Talk, session: string, text: string) {
  const { messageId } = await talk.call("agent.prompt", { session, text })
  const items = []
  for await (const { item } of talk.feed("session.feed", { id: session })) {
    items.push(item)
    if (item.type === "prompt" && item.prompt.messageId === messageId && item.prompt.state === "done") break
  }
  return items
}

describe("a repository for an agent", () => {
  test("is brought through the key broker, worked on, shown, pushed and asked to be merged; no key is ever inside", async () => {
    const { talk } = runner
    const { id: session } = await talk.call("session.create", { workspace: "widgets", keys })
    const agent = await talk.call("agent.start", {
      ...{ session, spec: scripted, repo: "acme/widgets", branch: "fix" },
      ...{ identity: { name: "Ada", email: "ada@example.com" }, persona: "You are kind." },
      instructions: [{ name: "rules.md", text: "Be brief." }],
    })
    expect(agent.provisioned).toMatchObject({
      ...{ folder: "/workspace", branch: "fix", persona: "/home/user/.warren/agent/persona.md" },
      instructions: ["/home/user/.warren/agent/instructions/rules.md"],
    })

    const script =
      "cat README.md; echo more >> README.md; echo x > new; stat -c %U .git README.md; cat $WARREN_PERSONA_FILE"
    const items = await turn(talk, session, written({ run: script }))
    const steps = items.flatMap((item) => (item.type === "provision" ? [`${item.step} ${item.state}`] : []))
    expect(steps).toEqual(expect.arrayContaining(["identity done", "clone done", "checkout done", "files done"]))
    expect(items).toContainEqual({ type: "files.changed", paths: ["README.md", "new"] })
    expect(items).toContainEqual(expect.objectContaining({ type: "git.state", branch: "fix", isDirty: true }))
    expect(JSON.stringify(items)).toContain(String.raw`# Widgets\nuser\nuser\nYou are kind.`)

    expect(await talk.call("session.gitState", { id: session })).toMatchObject({
      ...{ branch: "fix", isDirty: true, changes: 2, remote: "https://github.com/acme/widgets.git" },
    })
    expect(await talk.call("session.changedFiles", { id: session })).toEqual({
      files: [
        { path: "README.md", status: "modified", additions: 1, deletions: 0 },
        { path: "new", status: "added", additions: 1, deletions: 0 },
      ],
      isCut: false,
    })
    const { text } = await talk.call("session.diff", { id: session, path: "README.md" })
    expect(text).toContain("+more\n")

    await turn(talk, session, written({ run: "git add -A && git commit -qm 'Say more'" }))
    const title = "Say more"
    const made = await talk.call("session.createPullRequest", { id: session, title })
    expect(made).toMatchObject({ number: 1, isNew: true, head: "fix", base: "main" })
    expect(forge.pulls).toMatchObject([{ head: "fix", base: "main", title }])
    expect(await talk.call("session.createPullRequest", { id: session, title })).toMatchObject({ isNew: false })
    const log = await talk.run(session, "cd /workspace && git fetch -q && git log -1 --format='%an %ae' origin/fix")
    expect(log.text).toBe("Ada ada@example.com\n")

    const look = `cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c '${key}'; grep -rIl 'KEY-7f3a9c\\|lease_' /workspace /home/user /tmp /run 2>/dev/null`
    expect((await talk.run(session, look)).text).toBe("0\n")
  })

  test("is found again by the next session, with what was not committed", async () => {
    const { talk } = runner
    const first = await talk.call("session.create", { workspace: "again", keys })
    await talk.call("agent.start", { session: first.id, spec: scripted, repo: "acme/widgets" })
    await talk.run(first.id, "echo mine >> /workspace/README.md; echo y > /workspace/mine")
    await talk.call("session.delete", { id: first.id })
    const { id: session } = await talk.call("session.create", { workspace: "again", keys })
    const agent = await talk.call("agent.start", { session, spec: scripted, repo: "https://github.com/acme/widgets" })
    expect(agent.provisioned).toMatchObject({ folder: "/workspace", branch: "main" })
    expect((await talk.run(session, "cat /workspace/README.md /workspace/mine")).text).toBe("# Widgets\nmine\ny\n")
    const elsewhere = { session, spec: scripted, repo: "acme/widgets", branch: "feature", folder: "other" }
    expect((await talk.call("agent.start", elsewhere)).provisioned).toMatchObject({ folder: "/workspace/other" })
    expect((await talk.run(session, "git -C /workspace/other rev-parse --abbrev-ref @{u}")).text).toBe(
      "origin/feature\n",
    )
  })

  test("that may not be had fails with its step named and what to do; the key can be lent later", async () => {
    const { talk } = runner
    const { id: session } = await talk.call("session.create", {})
    const wishes = { session, spec: scripted, repo: "acme/widgets" }
    await expect(talk.call("agent.start", wishes)).rejects.toMatchObject({
      ...{ subject: "step:clone", message: expect.stringMatching(/^clone: /), hint: expect.stringContaining("lend") },
    })
    await talk.call("session.update", { id: session, keys: [{ scope: "git:read", destination: "github.com" }] })
    expect((await talk.call("agent.start", wishes)).provisioned).toMatchObject({ folder: "/home/user/widgets" })
    const pull = talk.call("session.createPullRequest", { id: session, title: "No" })
    await expect(pull).rejects.toMatchObject({ code: "forbidden" })
  })

  test("that does not come can be given up, and leaves no program behind", async () => {
    const { talk } = runner
    const silent = [{ scope: "git:read" as const, destination: "silent.example" }]
    const { id: session } = await talk.call("session.create", { keys: silent })
    const stop = new AbortController()
    const wishes = { session, spec: scripted, repo: "https://silent.example/a/b.git" }
    const starting = talk.call("agent.start", wishes, { signal: stop.signal })
    starting.catch(() => undefined)
    await eventually(() => hangs > 0)
    stop.abort()
    await expect(starting).rejects.toThrow()
    let running = "yes"
    while (running !== "") running = (await talk.run(session, "pgrep -x git")).text
    for await (const { item } of talk.feed("session.feed", { id: session }))
      if (item.type === "provision" && item.state === "failed") {
        expect(item).toMatchObject({ step: "clone", detail: "no longer wanted" })
        break
      }
  })

  test("comes with files: an image is a file and a part, and one that is not there is refused", async () => {
    const { talk } = runner
    const { id: session } = await talk.call("session.create", { network: { mode: "none" } })
    await talk.call("agent.start", { session, spec: scripted })
    const image = { type: "file" as const, filename: "a b.png", mime: "image/png", data: "iVBORw0KGgo=" }
    const { messageId, chatId } = await talk.call("agent.prompt", { session, text: "Look", attachments: [image] })
    const path = `/home/user/.warren/attachments/${messageId}/a b.png`
    const { items } = await talk.call("chat.messages", { id: chatId })
    expect(items[0]?.parts).toEqual([
      { type: "text", text: "Look" },
      { type: "file", name: "a b.png", mediaType: "image/png", path },
    ])
    expect((await talk.run(session, `base64 "${path}"`)).text).toBe("iVBORw0KGgo=\n")
    const missing = { type: "file" as const, mime: "text/plain", url: "file:///nowhere" }
    await expect(talk.call("agent.prompt", { session, text: "Look", attachments: [missing] })).rejects.toMatchObject({
      code: "not_found",
    })
  })

  test("that was half-way there when the runner was killed is left alone, and the next runner goes on", async () => {
    const silent = { scope: "git:read" as const, destination: "silent.example" }
    const { id: session } = await runner.talk.call("session.create", { keys: [silent, ...keys] })
    const seen = hangs
    const starting = runner.talk.call("agent.start", {
      session,
      spec: scripted,
      repo: "https://silent.example/a/b.git",
    })
    starting.catch(() => undefined)
    await eventually(() => hangs > seen)
    await runner.kill()
    runner = await Runner.start(home, settings)
    const { talk } = runner
    expect((await talk.call("agent.get", { session })).provisioned).toBeUndefined()
    let running = "yes"
    while (running !== "") running = (await talk.run(session, "pgrep -x git")).text
    const agent = await talk.call("agent.start", { session, spec: scripted, repo: "acme/widgets" })
    expect(agent.provisioned).toMatchObject({ folder: "/home/user/widgets", branch: "main" })
    expect(JSON.stringify(await turn(talk, session, written({ run: "cat README.md" })))).toContain("# Widgets")
  })
})
