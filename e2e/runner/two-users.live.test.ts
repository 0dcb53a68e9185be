import { execFile, spawn } from "node:child_process"
import { lstatSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { makePerson, processesOf, type Person } from "@warren/drivers/oci/testing/person.ts"
import { checkout, withCheckout } from "@warren/drivers/testing/elsewhere.ts"
import { rpcSocketOf } from "@warren/protocol/places.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Runner } from "./runner.ts"

const run = promisify(execFile)
const idsEach = 4 * 65_536
/** What an ordinary user's machine cannot limit is not asked for. */
const wishes = { limits: { mayBeUnlimited: true, diskBytes: 0 } } as const

/** A person with a runner of their own. */
interface Desk {
  readonly person: Person
  readonly home: string
  readonly root: string
  readonly runner: Runner
}

async function openDesk(): Promise<Desk> {
  const person = await makePerson(idsEach)
  const home = join(person.home, "w")
  const argv = withCheckout([...asPerson(person), process.execPath, `${checkout}/dist/runner.js`])
  const child = spawn(...argv, {
    env: { PATH: process.env["PATH"], HOME: person.home, WARREN_HOME: home, WARREN_POOL_MB: "0" },
    stdio: ["ignore", "ignore", "pipe"],
  })
  const runner = await Runner.of(child, rpcSocketOf(home), performance.now()).catch(async (failure: unknown) => {
    await person[Symbol.asyncDispose]()
    throw failure
  })
  return { person, home, root: join(home, "runner"), runner }
}

/** The bounding set stays: without it newuidmap has no right to write a map. */
function asPerson({ name }: Person): string[] {
  return ["setpriv", "--reuid", name, "--regid", name, "--init-groups", "--inh-caps=-all"]
}

async function closeDesk(desk: Desk | undefined): Promise<void> {
  if (!desk) return
  const { talk } = desk.runner
  for (const { id } of await talk.sessions()) await talk.call("session.delete", { id })
  await desk.runner[Symbol.asyncDispose]()
  await desk.person[Symbol.asyncDispose]()
}

describe.skipIf(process.getuid?.() !== 0)("two users of one machine", { timeout: 120_000 }, () => {
  let one: Desk
  let other: Desk

  beforeAll(async () => {
    one = await openDesk()
    other = await openDesk()
  }, 120_000)
  afterAll(async () => {
    await closeDesk(one)
    await closeDesk(other)
  }, 120_000)

  /** What a command of the other user says when it fails; undefined when it does not. */
  async function attempt(command: string): Promise<string | undefined> {
    try {
      await run("setpriv", [...asPerson(other.person).slice(1), "sh", "-c", command], { cwd: "/" })
      return undefined
    } catch (failure) {
      return (failure as { stderr: string }).stderr
    }
  }
  const denied = /Permission denied|Operation not permitted|EACCES/

  it("have sessions that work, each with their own", async () => {
    for (const { runner, person } of [one, other]) {
      expect(await runner.talk.call("health.check", {})).toMatchObject({ user: person.name })
      const { id } = await runner.talk.call("session.create", { name: "mine", ...wishes })
      await runner.talk.write(id, "/home/user/secret", person.name)
      expect(await runner.talk.read("mine", "/home/user/secret")).toBe(person.name)
      await runner.talk.call("process.spawn", { session: id, cmd: "exec sleep 100000" })
    }
  })

  it("cannot name each other's sessions", async () => {
    const { id } = await one.runner.talk.call("session.get", { id: "mine" })
    const { talk } = other.runner
    await expect(talk.call("session.get", { id })).rejects.toMatchObject({ code: "not_found" })
    await expect(talk.run(id, "true")).rejects.toMatchObject({ code: "not_found" })
    await expect(talk.call("session.delete", { id })).rejects.toMatchObject({ code: "not_found" })
    expect((await talk.sessions()).map((session) => session.name)).toEqual(["mine"])
    expect((await talk.sessions()).map((session) => session.id)).not.toContain(id)
  })

  it("have folders that only they can enter", () => {
    const folders = ["shared", "tmp", "vault", "ipc", "logs", "internal", "sandboxes"]
    expect(readdirSync(one.root)).toEqual(expect.arrayContaining(folders))
    for (const folder of ["", ...folders]) {
      const { mode, uid } = lstatSync(join(one.root, folder))
      expect([folder, (mode & 0o777).toString(8), uid]).toEqual([folder, "700", one.person.uid])
    }
    expect(lstatSync(rpcSocketOf(one.home)).mode & 0o777).toBe(0o600)
  })

  it("cannot open each other's sockets, files or database", async () => {
    // As far as it goes, and as if the folders above were open to everybody: the user's own wall does not depend on them.
    await run("chmod", ["755", one.person.home, one.home])
    const sandbox = readdirSync(join(one.root, "sandboxes", "oci", "volume")).find((name) => name.startsWith("sbx_"))
    const paths = [
      "",
      "internal/warren.db",
      "internal/lock",
      "vault/key",
      "logs/runner.log",
      "shared/workspaces",
      "sandboxes/oci/volume",
      `sandboxes/oci/volume/${sandbox}/data`,
    ]
    for (const path of paths)
      expect(await attempt(`ls -la '${join(one.root, path)}/'; cat '${join(one.root, path)}'`), path).toMatch(denied)
    for (const socket of ["ipc/rpc.sock", `sandboxes/oci/volume/${sandbox}/init.sock`]) {
      const program = `require("net").connect(process.argv[1]).on("error", (e) => { console.error(e.code); process.exit(1) }).on("connect", () => process.exit(0))`
      expect(await attempt(`'${process.execPath}' -e '${program}' '${join(one.root, socket)}'`), socket).toMatch(denied)
    }
    expect(await attempt(`touch '${join(one.root, "shared", "x")}'`)).toMatch(denied)
  })

  it("cannot signal or look into each other's processes", async () => {
    const pids = processesOf(idsOf(one))
    expect(pids.length).toBeGreaterThan(2)
    expect(pids).toContain(String(one.runner.pid))
    for (const pid of pids) {
      expect(await attempt(`kill -0 ${pid}`), `kill ${pid}`).toMatch(denied)
      expect(await attempt(`kill -9 ${pid}`), `kill ${pid}`).toMatch(denied)
      // The kernel lets whoever may attach a debugger open this, and nobody else.
      expect(await attempt(`exec 3<> /proc/${pid}/mem`), `debug ${pid}`).toMatch(denied)
      expect(await attempt(`cat /proc/${pid}/environ`), `environment of ${pid}`).toMatch(denied)
      expect(await attempt(`ls /proc/${pid}/fd/ /proc/${pid}/cwd/`), `files of ${pid}`).toMatch(denied)
    }
    expect(processesOf(idsOf(one))).toEqual(pids)
    expect(await one.runner.talk.run("mine", "cat ~/secret")).toMatchObject({ text: one.person.name })
  })

  it("cannot start a second runner in the other's place", async () => {
    const argv = withCheckout([...asPerson(other.person), process.execPath, `${checkout}/dist/runner.js`])
    const env = { PATH: process.env["PATH"], HOME: other.person.home, WARREN_HOME: one.home }
    await expect(run(...argv, { env })).rejects.toThrow(/EACCES|permission denied/i)
    expect(await one.runner.talk.call("health.check", {})).toMatchObject({ user: one.person.name })
  })

  function idsOf({ person }: Desk): { first: number; count: number }[] {
    return [{ first: person.uid, count: 1 }, ...subordinateIds(person)]
  }
})

function subordinateIds({ name }: Person): { first: number; count: number }[] {
  const lines = readFileSync("/etc/subuid", "utf8").split("\n")
  const granted = lines.map((line) => line.split(":")).filter(([who]) => who === name)
  return granted.map(([, first, count]) => ({ first: Number(first), count: Number(count) }))
}
