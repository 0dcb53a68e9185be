import { execFile } from "node:child_process"
import { mkdir, rename, writeFile } from "node:fs/promises"
import { promisify } from "node:util"
import { eventually } from "@warren/base/testing/eventually.ts"
import { bundleProgram } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { afterAll, beforeAll, expect, test } from "vitest"
import { HostPlaces } from "../testing/host-places.ts"
import { feedUntil, HubSystem, isDone } from "../testing/hub-system.ts"
import type { SessionHub } from "../session-hub.ts"

const run = promisify(execFile)
const scripted = AgentSpec.parse({ adapter: "scripted" })
let folder: TempFolder
let program: string
let count = 0

beforeAll(async () => {
  folder = await TempFolder.make()
  program = await bundleProgram(new URL("../../../../../apps/supervisor/src/main.ts", import.meta.url), folder)
})
afterAll(() => folder[Symbol.asyncDispose]())

async function served(): Promise<{ home: string; remote: string }> {
  const home = folder.at(`home${++count}`)
  const remote = folder.at(`remote${count}.git`)
  await mkdir(home)
  const who = ["-c", "user.name=a", "-c", "user.email=a@b"]
  const made = folder.at(`made${count}`)
  await run("git", ["init", "-q", "-b", "main", made])
  await writeFile(`${made}/read me`, "hello\n")
  await run("git", ["-C", made, "add", "-A"])
  await run("git", ["-C", made, ...who, "commit", "-q", "-m", "first"])
  await run("git", ["clone", "-q", "--bare", made, remote])
  return { home, remote }
}

const written = (...steps: object[]): string => `[[script:${JSON.stringify({ steps })}]]`
const say = (hub: SessionHub, text: string) =>
  hub.prompt({ text, channel: "web:default", mode: "followup", wishes: {} })

test("an agent works in the repository, and with its turn's end comes what it did there", async () => {
  const { home, remote } = await served()
  await using places = new HostPlaces(program, home)
  await using system = new HubSystem(folder.at(`${count}.db`), places)
  const hub = await system.start("s", scripted, { repo: `file://${remote}`, branch: "work" })
  expect(hub.shown().provisioned).toMatchObject({ branch: "work" })
  const steps = (
    await feedUntil(hub, (item) => item.type === "provision" && item.step === "checkout" && item.state === "done")
  ).flatMap((item) => (item.type === "provision" && item.percent === undefined ? [`${item.step} ${item.state}`] : []))
  expect(steps).toContain("clone done")

  const first = say(hub, written({ run: "cat 'read me'; echo more >> 'read me'; echo x > new; pwd" }))
  const items = await feedUntil(hub, isDone(first.messageId))
  expect(items.find(({ type }) => type === "files.changed")).toEqual({
    type: "files.changed",
    paths: ["read me", "new"],
  })
  expect(items.find(({ type }) => type === "git.state")).toMatchObject({ branch: "work", isDirty: true })
  const order = items.map(({ type }) => type)
  expect(order.indexOf("git.state")).toBeLessThan(order.lastIndexOf("message.finalize"))

  const second = say(hub, written({ run: "git add -A && git commit -qm second && echo y > other" }))
  const later = (await feedUntil(hub, isDone(second.messageId))).slice(items.length)
  expect(later.find(({ type }) => type === "files.changed")).toMatchObject({
    paths: expect.arrayContaining(["other", "read me", "new"]),
  })
  const third = say(hub, written({ text: "nothing" }))
  const last = (await feedUntil(hub, isDone(third.messageId))).slice(items.length + later.length)
  expect(last.some(({ type }) => type === "files.changed")).toBe(false)
  expect(last.some(({ type }) => type === "git.state")).toBe(true)
})

test("a step that fails is named, ends what waited for it, and is tried again with the next prompt", async () => {
  const { home, remote } = await served()
  await using places = new HostPlaces(program, home)
  await using system = new HubSystem(folder.at(`${count}.db`), places)
  await rename(remote, `${remote}.away`)
  const starting = system.start("s", scripted, { repo: `file://${remote}` })
  await expect(starting).rejects.toMatchObject({ subject: "step:clone", message: expect.stringMatching(/^clone: /) })
  const hub = system.hub.of("s")
  expect(hub.shown()).toMatchObject({ status: "error", isConnected: false })
  const first = say(hub, "hello")
  const items = await feedUntil(hub, isDone(first.messageId))
  expect(items.findLast(({ type }) => type === "message.finalize")).toMatchObject({
    message: {
      reason: "error",
      cause: "start",
      parts: [{ type: "error", message: expect.stringMatching(/^clone: /) }],
    },
  })
  expect(places.launches).toBe(0)
  await rename(`${remote}.away`, remote)
  const second = say(hub, written({ run: "cat 'read me'" }))
  const later = await feedUntil(hub, isDone(second.messageId))
  expect(later.findLast(({ type }) => type === "message.finalize")).toMatchObject({ message: { reason: "end_turn" } })
  expect(hub.shown().provisioned).toMatchObject({ branch: "main" })
})

test("a prompt waits until everything is there; aborted meanwhile, it ends, and what comes next works", async () => {
  const { home, remote } = await served()
  await using places = new HostPlaces(program, home)
  await using system = new HubSystem(folder.at(`${count}.db`), places)
  // Git waits for whoever writes to it: a remote that never answers.
  places.bench.env = { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "core.sshCommand", GIT_CONFIG_VALUE_0: "sleep 1000 #" }
  const wishes = { repo: "ssh://git@example.invalid/a/b.git", folder: "b" }
  const stop = new AbortController()
  const starting = system.hub.start("s", scripted, wishes, stop.signal)
  starting.catch(() => undefined)
  const hub = system.hub.of("s")
  const fetches = (): number => places.bench.ran.filter((argv) => argv.includes("fetch")).length
  await eventually(() => fetches() === 1)
  const first = say(hub, "hello")
  stop.abort(new Error("enough"))
  await expect(starting).rejects.toThrow("enough")
  // Who asked first does not want it any more; the prompt does, and begins it anew.
  await eventually(() => fetches() === 2)
  expect(hub.shown().prompts).toMatchObject([{ state: "queued" }])
  hub.abort(true)
  const items = await feedUntil(hub, isDone(first.messageId))
  expect(items.findLast(({ type }) => type === "message.finalize")).toMatchObject({ message: { reason: "canceled" } })
  places.bench.env = {}
  await system.start("s", scripted, { repo: `file://${remote}` })
  const second = say(hub, written({ run: "cat 'read me'" }))
  await feedUntil(hub, isDone(second.messageId))
  expect(places.uses.get("s")).toBe(0)
})

test("another runner goes on where the last one was cut off", async () => {
  const { home, remote } = await served()
  await using places = new HostPlaces(program, home)
  await using system = new HubSystem(folder.at(`${count}.db`), places)
  await rename(remote, `${remote}.away`)
  await expect(system.start("s", scripted, { repo: `file://${remote}` })).rejects.toThrow("clone: ")
  await system.restart()
  await rename(`${remote}.away`, remote)
  const hub = system.hub.of("s")
  expect(hub.shown().provisioned).toBeUndefined()
  const said = say(hub, written({ run: "git log --format=%s" }))
  const items = await feedUntil(hub, isDone(said.messageId))
  expect(items.findLast(({ type }) => type === "message.finalize")).toMatchObject({
    message: { reason: "end_turn", parts: [expect.objectContaining({ result: "first\n" })] },
  })
  // Started again with the same wishes it is what it was; with others it is made ready anew.
  await system.start("s", scripted, { repo: `file://${remote}` })
  expect(places.launches).toBe(1)
  await system.start("s", scripted, { repo: `file://${remote}`, branch: "other" })
  expect(places.launches).toBe(2)
  expect(system.hub.of("s").shown().provisioned).toMatchObject({ branch: "other" })
})
