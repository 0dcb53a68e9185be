import { execFile, spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import { newId } from "@warren/base/id.ts"
import { cgroupParent, initPid } from "@warren/drivers/oci/testing/invariants.ts"
import { controlSocketOf, gatewaySocketOf, rpcSocketOf } from "@warren/protocol/places.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { dist, Home } from "../runner/home.ts"
import { lastingLeaks, lookAt } from "../runner/machine.ts"
import { refusal, Runner } from "../runner/runner.ts"

const run = promisify(execFile)

/** A process that has nothing to do with Warren, and is alive for as long as nobody kills it. */
class Bystander implements AsyncDisposable {
  readonly #child: ChildProcess = spawn("sleep", ["100000"], { stdio: "ignore", detached: true })

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** When it was started, as the kernel has it. */
  get startTicks(): string {
    const stat = readFileSync(`/proc/${this.pid}/stat`, "utf8")
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? ""
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null && existsSync(`/proc/${this.pid}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.isAlive) return
    const gone = once(this.#child, "exit")
    this.#child.kill("SIGKILL")
    await gone
  }
}

/** What can lie where a socket should be, and what of it must still be there afterwards. */
const leftovers: Readonly<Record<string, (path: string, aside: string) => Promise<void> | void>> = {
  "a socket nobody listens at": async (path) => {
    const server = createServer().listen(`${path}.other`)
    await once(server, "listening")
    // Node takes the file along when it closes; a process that is killed does not.
    await run("mv", [`${path}.other`, path])
    server.close()
  },
  "a file": (path) => writeFileSync(path, "left over"),
  "a link to a file": (path, aside) => symlinkSync(join(aside, "file"), path),
  "a link to a folder": (path, aside) => symlinkSync(aside, path),
  "a link to nothing": (path) => symlinkSync("/nonexistent/nothing", path),
}

describe.skipIf(process.getuid?.() !== 0)("what an earlier life left behind", { timeout: 120_000 }, () => {
  const home = new Home()
  const sockets = [rpcSocketOf(home.path), controlSocketOf(home.path), gatewaySocketOf(home.path)]

  // As one that was used before.
  beforeAll(async () => void (await (await Runner.start(home)).stop()))
  afterAll(() => home[Symbol.asyncDispose]())

  it("where sockets are is replaced, and nothing that it leads to is touched", async () => {
    const aside = join(home.path, "aside")
    mkdirSync(aside)
    writeFileSync(join(aside, "file"), "kept")
    const { id } = await (async () => {
      await using first = await Runner.start(home)
      return await first.talk.call("session.create", { name: "lasting" })
    })()
    const all = Object.entries(leftovers)
    // Each of them at one of the sockets.
    for (let from = 0; from < all.length; from += sockets.length) {
      const placed = sockets.map((path, index) => ({ path, left: all[(from + index) % all.length] }))
      for (const { path, left } of placed) {
        rmSync(path, { force: true })
        await left?.[1](path, aside)
      }
      await using again = await Runner.start(home)
      expect(await again.talk.run(id, "echo on")).toMatchObject({ text: "on\n" })
      // One that answers here may be about to listen there.
      const isSocket = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true
      for (const { path, left } of placed)
        await expect.poll(() => isSocket(path), { message: `${left?.[0]}: ${path}`, timeout: 20_000 }).toBe(true)
      expect(readFileSync(join(aside, "file"), "utf8")).toBe("kept")
      await again.kill()
    }
    await using last = await Runner.start(home)
    await last.talk.call("session.delete", { id })
    expect(await lastingLeaks(home)).toEqual([])
  })

  it("is not replaced where it is a folder: it is said which, and what is in it stays", async () => {
    const [path = ""] = sockets
    rmSync(path, { force: true })
    mkdirSync(path)
    writeFileSync(join(path, "file"), "kept")
    const words = await refusal(home)
    expect(words).toContain(path)
    expect(words).toMatch(/Fault: .*folder/)
    expect(words).toMatch(/hint: /)
    expect(readFileSync(join(path, "file"), "utf8")).toBe("kept")
    rmSync(path, { recursive: true })
    await using again = await Runner.start(home)
    expect(await again.talk.sessions()).toEqual([])
    expect(await lastingLeaks(home)).toEqual([])
  })

  it("or is alive: a second runner on the same home says so, and the first goes on", async () => {
    await using first = await Runner.start(home)
    const { id } = await first.talk.call("session.create", {})
    expect(await endedSaying(home)).toMatch(/already running/)
    expect(await first.talk.run(id, "echo on")).toMatchObject({ text: "on\n" })
    // Its sockets are still its own.
    await using other = await first.talk.open("process.exec", { session: id, cmd: "echo too" })
    expect(await other.next()).toBeDefined()
    // The lock of one that was killed is free.
    await first.kill()
    await using again = await Runner.start(home)
    await again.talk.call("session.delete", { id })
    expect(await lastingLeaks(home)).toEqual([])
  })

  it("is a lock that is none: it is said, with what to do", async () => {
    const lock = home.at("internal", "lock")
    for (const spoil of [() => writeFileSync(lock, "nonsense ".repeat(1_000)), () => mkdirSync(lock)]) {
      rmSync(lock, { recursive: true, force: true })
      spoil()
      expect(await refusal(home)).toMatch(/Fault: could not take the lock at [^]*hint: /)
    }
    rmSync(lock, { recursive: true })
    await using again = await Runner.start(home)
    expect(await again.talk.sessions()).toEqual([])
  })

  it("are pids that are other processes now: they are left alone", async () => {
    await using bystander = await Promise.resolve(new Bystander())
    const ids: string[] = []
    await using first = await Runner.start(home)
    // With the start it was written down with, and with its own.
    for (const _ of [1, 2]) ids.push((await first.talk.call("session.create", {})).id)
    for (const id of ids) await first.talk.write(id, "/home/user/note", "kept")
    await first.kill()
    const places = lookAt(home).sessions.map(({ sandbox = "" }) => ({
      running: join(home.driverRoot, "volume", sandbox, "running.json"),
      init: initPid(home.driverRoot, sandbox),
    }))
    for (const [index, { running, init }] of places.entries()) {
      const known = JSON.parse(readFileSync(running, "utf8")) as { pid: number; startTicks: string }
      expect(known.pid).toBe(init)
      const { pid, startTicks } = bystander
      process.kill(init, "SIGKILL")
      writeFileSync(running, JSON.stringify(index === 0 ? { ...known, pid } : { ...known, pid, startTicks }))
    }
    await using again = await Runner.start(home)
    expect(await again.talk.call("health.check", {})).toMatchObject({ found: { adopted: 0, lost: 2 } })
    expect(bystander.isAlive).toBe(true)
    for (const id of ids) expect(await again.talk.read(id, "/home/user/note")).toBe("kept")
    for (const id of ids) await again.talk.call("session.delete", { id })
    expect(bystander.isAlive).toBe(true)
    expect(await lastingLeaks(home)).toEqual([])
  })

  it("are groups of sandboxes that nobody knows: they go", async () => {
    await using first = await Runner.start(home)
    const { id } = await first.talk.call("session.create", {})
    const parents = groupParents(home)
    await first.kill()
    expect(parents.length).toBeGreaterThan(0)
    const left = parents.map((parent) => join(parent, newId("sbx")))
    for (const folder of left) mkdirSync(folder)
    await using again = await Runner.start(home)
    expect(left.filter((folder) => existsSync(folder))).toEqual([])
    expect(await again.talk.run(id, "echo on")).toMatchObject({ text: "on\n" })
    await again.talk.call("session.delete", { id })
    expect(await lastingLeaks(home)).toEqual([])
  })

  it("is a pid file that names another process: nothing is stopped", async () => {
    await using bystander = await Promise.resolve(new Bystander())
    const { pid } = bystander
    const another = { pid, startTicks: "1" }
    const file = join(home.path, "warren.pid")
    const about = { ...another, port: 1, isDaemon: true, parts: [another, another] }
    for (const words of [JSON.stringify(about), "nonsense", `{"pid":${pid}}`]) {
      writeFileSync(file, words)
      const env = { ...process.env, WARREN_HOME: home.path }
      await run(process.execPath, [join(dist, "cli.js"), "stop"], { env }).then(
        () => expect.unreachable("it stopped something"),
        (failure: unknown) => expect((failure as { stderr: string }).stderr).toMatch(/no runner is running/),
      )
      expect(bystander.isAlive).toBe(true)
    }
  })
})

/** A runner that must end by itself, while another answers at its socket: what it said. */
async function endedSaying(home: Home): Promise<string> {
  const env = { ...process.env, WARREN_HOME: home.path }
  const child = spawn(process.execPath, [`${dist}/runner.js`], { env, stdio: ["ignore", "ignore", "pipe"] })
  let said = ""
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()))
  const [code] = (await once(child, "close")) as [number]
  expect(code).not.toBe(0)
  return said
}

/** Of whichever hierarchies there are. */
function groupParents(home: Home): string[] {
  const name = cgroupParent(home.driverRoot)
  return ["", "memory", "pids", "cpu", "cpu,cpuacct", "freezer", "unified"]
    .map((one) => join("/sys/fs/cgroup", one, name))
    .filter((folder) => existsSync(folder) && !lstatSync(join(folder, "..")).isSymbolicLink())
}
