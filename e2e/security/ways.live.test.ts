import { spawn } from "node:child_process"
import { closeSync, openSync, readFileSync } from "node:fs"
import { Scope } from "@warren/base/scope.ts"
import { rpcSocketOf } from "@warren/protocol/places.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { PolicyName } from "../probes/policy.ts"
import { parse, Probe } from "../probes/probe.ts"
import { dist, Home } from "../runner/home.ts"
import { Runner } from "../runner/runner.ts"
import type { Talk } from "../runner/talk.ts"
import { agree } from "./agree.ts"

const slowMs = 120_000
const said = "/home/user/said"
const script = "/home/user/bin/shoot"
const pool = { WARREN_POOL_LEAST: "1", WARREN_POOL_MB: "64" }

/** A runner that was itself given fifty open files by whoever started it: none of them is anybody's business inside. */
async function loaded(home: Home): Promise<Runner> {
  const fd = openSync("/etc/hostname", "r")
  try {
    const begun = performance.now()
    const child = spawn(process.execPath, [`${dist}/runner.js`], {
      env: { ...process.env, ...pool, WARREN_HOME: home.path },
      stdio: ["ignore", "ignore", "pipe", ...Array.from({ length: 50 }, () => fd)],
    })
    return await Runner.of(child, rpcSocketOf(home.path), begun)
  } finally {
    closeSync(fd)
  }
}

/** Every way in which a whole Warren runs somebody's program: all of them must be as narrow as the first. */
describe.skipIf(process.getuid?.() !== 0)("a program in a session", () => {
  const scope = new Scope()
  let home: Home
  let probe: Probe
  let runner: Runner
  let session: string

  beforeAll(async () => {
    probe = scope.use(await Probe.open())
    home = scope.use(new Home())
    runner = scope.use(await loaded(home))
    session = await armed()
  }, slowMs)
  afterAll(() => scope.close(), slowMs)

  const talk = (): Talk => runner.talk

  /** A session with the probe in it, and a script that has it write down what it finds. */
  async function armed(wishes: object = {}): Promise<string> {
    const { id } = await talk().call("session.create", wishes)
    await using writing = await talk().open("file.write", { session: id, path: "/home/user/bin/probe", parents: true })
    await writing.write(readFileSync(probe.path))
    writing.send({ op: "eof" })
    await writing.next()
    const words = probe.words.map((word) => `'${word}'`).join(" ")
    await talk().write(
      id,
      script,
      `#!/bin/sh\n/home/user/bin/probe ${words} > ${said}.part && mv ${said}.part ${said}\n`,
    )
    await talk().run(id, `chmod 755 /home/user/bin/*`)
    return id
  }

  /** Has it shoot in some way, and compares what it wrote down. */
  async function shot(by: (id: string) => Promise<unknown>, policy: PolicyName, id = session): Promise<void> {
    await talk().run(id, `rm -f ${said} ${said}.part`, { user: "root" })
    await by(id)
    await expect.poll(async () => (await talk().run(id, `cat ${said}`)).text, { timeout: 60_000 }).toContain("end|end|")
    agree(parse(await talk().read(id, said)), policy)
  }

  const exec = (id: string): Promise<unknown> => talk().run(id, script)

  const ways: readonly [name: string, by: (id: string) => Promise<unknown>, policy: PolicyName][] = [
    ["exec", exec, "oci-dev"],
    ["exec as root", (id) => talk().run(id, script, { user: "root" }), "oci-dev-root"],
    ["sudo", (id) => talk().run(id, `sudo ${script}`), "oci-dev-root"],
    ["a process that goes on by itself", (id) => talk().call("process.spawn", { session: id, cmd: script }), "oci-dev"],
    ["one that is written to", (id) => talk().call("process.spawnRpc", { session: id, cmd: script }), "oci-dev"],
    ["a terminal", (id) => talk().call("terminal.open", { session: id, name: "probe", cmd: script }), "oci-dev"],
    ["a shell", inShell, "oci-dev"],
    ["a service", asService, "oci-dev"],
    ["an agent", asAgent, "oci-dev"],
    ["a hook of git", asHook, "oci-dev"],
  ]

  async function inShell(id: string): Promise<void> {
    const { shell } = await talk().call("shell.open", { session: id })
    await talk().runInShell(id, shell, script)
  }

  /** Whatever is called `code-server` is what the runner starts as the editor. */
  async function asService(id: string): Promise<void> {
    const editor = "/home/user/.local/bin/code-server"
    await talk().run(id, `mkdir -p /home/user/.local/bin && cp ${script} ${editor}`)
    await talk()
      .call("service.start", { session: id, name: "vscode" })
      .catch(() => undefined)
    await talk()
      .call("service.stop", { session: id, name: "vscode" })
      .catch(() => undefined)
    await talk().run(id, `rm ${editor}`)
  }

  async function asAgent(id: string): Promise<void> {
    await talk().call("agent.start", { session: id, spec: { adapter: "command", cmd: script } })
    await talk().call("agent.prompt", { session: id, text: "shoot" })
    await expect.poll(async () => (await talk().run(id, `ls ${said}`)).exitCode, { timeout: 60_000 }).toBe(0)
    await talk().call("agent.stop", { session: id })
  }

  /** A repository may name a program that git runs whenever it is asked what changed; the runner asks. */
  async function asHook(id: string): Promise<void> {
    const folder = "/home/user/repo"
    await talk().run(id, `git init -q ${folder} && git -C ${folder} config core.fsmonitor ${script}`)
    await talk().call("session.changedFiles", { id, folder })
    // Where the runner's git takes no such advice, the person's own does.
    await talk().run(id, `git -C ${folder} status`)
  }

  it.each(ways)("is as shut by %s", { timeout: slowMs }, async (_name, by, policy) => {
    await shot(by, policy)
  })

  it("is as shut in one that waited in the pool", { timeout: slowMs }, async () => {
    const isReady = async (): Promise<boolean> =>
      (await talk().call("pool.list", {})).pools.some(({ ready }) => ready > 0)
    await expect.poll(isReady, { timeout: 60_000 }).toBe(true)
    const id = await armed()
    expect((await talk().call("session.get", { id })).acquireSource).toBe("pool")
    await shot(exec, "oci-dev", id)
    await talk().call("session.delete", { id })
  })

  it("is as shut in a strict one", { timeout: slowMs }, async () => {
    const id = await armed({ profile: "strict", network: { mode: "none" } })
    await talk().run(id, script)
    agree(parse(await talk().read(id, said)), "oci-strict")
    await talk().call("session.delete", { id })
  })

  it("is as shut in a fork, and in what a snapshot is made into", { timeout: slowMs }, async () => {
    const forked = (await talk().call("session.fork", { id: session })).sessions[0]
    if (!forked) throw new Error("there is no fork")
    await shot(exec, "oci-dev", forked.id)
    const snapshot = await talk().call("snapshot.create", { session })
    const made = await talk().call("session.create", { from: snapshot.id })
    await shot(exec, "oci-dev", made.id)
    await talk().call("session.rollback", { id: made.id, snapshot: snapshot.id })
    await shot(exec, "oci-dev", made.id)
    for (const { id } of [forked, made]) await talk().call("session.delete", { id })
    await talk().call("snapshot.delete", { id: snapshot.id })
  })

  it("is as shut after sleep, a stop, and the end of its runner", { timeout: slowMs }, async () => {
    await talk().call("session.hibernate", { id: session })
    await shot(exec, "oci-dev")
    await talk().call("session.pause", { id: session })
    await talk().call("session.resume", { id: session })
    await shot(exec, "oci-dev")
    await runner.kill()
    runner = scope.use(await loaded(home))
    await shot(exec, "oci-dev")
  })
})
