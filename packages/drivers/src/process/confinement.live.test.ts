import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createLog } from "@warren/base/log.ts"
import { listenUnix } from "@warren/base/unix-socket.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { lackOf, type Sandbox } from "../driver.ts"
import { exec } from "../init/exec.ts"
import { Files } from "../init/files.ts"
import { specOf } from "../spec-of.ts"
import { defaultLimits, type Network, type SandboxSpec } from "../sandbox-spec.ts"
import { machineImage, type ProcessDriver } from "./driver.ts"
import { allPids, descendants, readProcess } from "./process-tree.ts"
import { attack, Attacker } from "./testing/attacker.ts"
import { processSubject } from "./testing/subject.ts"

const never = new AbortController().signal
const isPerson = process.getuid?.() !== 0
const refused = /^(EACCES|EPERM)$/
const logged: string[] = []
const subject = processSubject({ log: createLog((line) => void logged.push(line)) })
let driver: ProcessDriver
let attacker: Attacker
let outside: string

beforeAll(async () => {
  driver = await subject.open()
  attacker = await Attacker.build()
  outside = mkdtempSync(join(tmpdir(), "warren-outside-"))
  chmodSync(outside, 0o777)
  writeFileSync(join(outside, "note"), "a person's note")
  chmodSync(join(outside, "note"), 0o666)
})
afterAll(async () => {
  await driver[Symbol.asyncDispose]()
  await attacker[Symbol.asyncDispose]()
  rmSync(outside, { recursive: true })
  expect(leftovers()).toEqual([])
})

/** Everything of this driver that is still on the machine. */
function leftovers(): string[] {
  const files = readdirSync(subject.root).filter((name) => !name.startsWith("lock"))
  const processes = allPids().filter((pid) => pid !== process.pid && commandLine(pid).includes(subject.root))
  return [...files, ...processes.map((pid) => `${pid} ${commandLine(pid)}`)]
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8")
  } catch {
    return ""
  }
}

function spec(changes: Partial<SandboxSpec> = {}): SandboxSpec {
  return specOf(machineImage, { limits: { ...defaultLimits, diskBytes: 0 }, ...changes })
}

/** A sandbox for as long as a test, with the attacker in it. */
async function use(): Promise<Sandbox & AsyncDisposable> {
  const asked = spec()
  await driver.create(asked, never)
  try {
    const sandbox = await driver.start(asked.id, never)
    await attacker.bring(sandbox)
    return Object.assign(sandbox, { [Symbol.asyncDispose]: () => driver.destroy(asked.id) })
  } catch (failure) {
    await driver.destroy(asked.id)
    throw failure
  }
}

function isRunning(pid: number): boolean {
  return readProcess(pid)?.isDead === false
}

/** The pids that a sandbox's keeper and init have on this machine. */
function processesOf(id: string): { keeper: number; init: number } {
  const running = JSON.parse(readFileSync(join(subject.root, id, "running.json"), "utf8")) as { pid: number }
  const init = descendants(running.pid).find(({ parent }) => parent === running.pid)
  return { keeper: running.pid, init: init?.pid ?? 0 }
}

describe("a program inside", () => {
  it("opens, changes and removes nothing outside its folders", async () => {
    await using sandbox = await use()
    const note = join(outside, "note")
    expect(await attacker.outside("read", note)).toBe("OPEN")
    expect(await attacker.outside("write", note)).toBe("OPEN")
    expect(await attacker.outside("list", outside)).toBe("OPEN")
    expect(await attack(sandbox, "read", "/etc/passwd")).toBe("OPEN")
    expect(await attack(sandbox, "read", note)).toMatch(refused)
    expect(await attack(sandbox, "write", note)).toMatch(refused)
    expect(await attack(sandbox, "list", outside)).toMatch(refused)
    expect(await attack(sandbox, "truncate", note)).toMatch(refused)
    expect(await attack(sandbox, "unlink", note)).toMatch(refused)
    expect(await attack(sandbox, "create", join(outside, "new"))).toMatch(refused)
    expect(await attack(sandbox, "rename", note, "stolen")).toMatch(/^(EACCES|EPERM|EXDEV)$/)
    expect(await attack(sandbox, "link", note, "stolen")).toMatch(/^(EACCES|EPERM|EXDEV)$/)
    expect(await attack(sandbox, "rename", "attack", join(outside, "planted"))).toMatch(/^(EACCES|EPERM|EXDEV)$/)
    expect(await attack(sandbox, "chmod", note)).toMatch(refused)
    expect(await attack(sandbox, "setxattr", note)).toMatch(refused)
    expect(readFileSync(note, "utf8")).toBe("a person's note")
    expect(readdirSync(outside)).toEqual(["note"])
  })

  it("reads no secret of the machine or of the runner", async () => {
    await using sandbox = await use()
    const secrets = [
      "/etc/shadow",
      "/etc/ssh/sshd_config",
      `/proc/${process.pid}/environ`,
      `/proc/${process.pid}/mem`,
      `/proc/${process.pid}/root/etc/hostname`,
      `/proc/${process.pid}/cwd/package.json`,
      join(subject.root, sandbox.id, "record.json"),
      join(subject.root, "lock"),
      import.meta.filename,
    ]
    for (const path of secrets.filter((one) => existsSync(one))) {
      expect([path, await attack(sandbox, "read", path)]).toEqual([path, expect.stringMatching(refused)])
    }
    for (const path of ["/root", "/home", "/var", "/etc", "/", "/sys", "/run", "/boot", "/dev", tmpdir()]) {
      if (!existsSync(path)) continue
      expect([path, await attack(sandbox, "list", path)]).toEqual([path, expect.stringMatching(refused)])
    }
    const descriptors = await exec(sandbox, { argv: ["ls", "/proc/self/fd"] })
    // The fourth is the folder that is being listed.
    expect(descriptors.stdout.toString()).toBe("0\n1\n2\n3\n")
  })

  it("does not see into another sandbox", async () => {
    await using one = await use()
    await using other = await use()
    await new Files(other).write("/workspace/secret", Buffer.from("theirs"), { mode: 0o666 })
    const theirs = join(subject.root, other.id, "data", "workspace", "secret")
    expect(existsSync(theirs)).toBe(true)
    expect(await attack(one, "read", theirs)).toMatch(refused)
    expect(await attack(one, "unix", join(subject.root, other.id, "init.sock"))).toMatch(refused)
    for (const pid of Object.values(processesOf(other.id))) {
      for (const what of ["kill", "ptrace", "prlimit"]) expect(await attack(one, what, String(pid))).toMatch(refused)
    }
  })

  it("opens no socket of any kind", async () => {
    const server = createServer().listen(0, "127.0.0.1")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    const path = join(outside, "s")
    const local = await listenUnix(path, (socket) => socket.destroy())
    chmodSync(path, 0o777)
    try {
      await using sandbox = await use()
      expect(await attacker.outside("tcp", String(port))).toBe("OPEN")
      expect(await attacker.outside("unix", path)).toBe("OPEN")
      expect(await attack(sandbox, "tcp", String(port))).toMatch(refused)
      expect(await attack(sandbox, "unix", path)).toMatch(refused)
      expect(await attack(sandbox, "tcp-listen")).toMatch(refused)
      expect(await attack(sandbox, "udp")).toMatch(refused)
      expect(await attack(sandbox, "netlink")).toMatch(refused)
    } finally {
      server.close()
      local.close()
    }
  })

  it("signals, traces and limits nobody outside, its keeper included", async () => {
    const victim = spawn("sleep", ["1000"])
    try {
      await using sandbox = await use()
      const { keeper, init } = processesOf(sandbox.id)
      expect(await attacker.outside("kill", String(victim.pid))).toBe("OPEN")
      for (const pid of [victim.pid, process.pid, keeper]) {
        for (const what of ["kill", "ptrace", "prlimit", "nice", "affinity"]) {
          expect([what, await attack(sandbox, what, String(pid))]).toEqual([what, expect.stringMatching(refused)])
        }
      }
      expect(await attack(sandbox, "ptrace", String(init))).toMatch(refused)
      expect(await attack(sandbox, "traceme")).toMatch(refused)
      expect(await attack(sandbox, "read", `/proc/${keeper}/environ`)).toMatch(refused)
    } finally {
      victim.kill("SIGKILL")
      await once(victim, "exit")
    }
  })

  it("gets no privilege and leaves nothing in the kernel", async () => {
    await using sandbox = await use()
    for (const what of ["unshare", "shm", "mq"]) expect(await attack(sandbox, what)).toMatch(refused)
    expect(await attack(sandbox, "mount", "/tmp")).toMatch(refused)
    const su = await exec(sandbox, { argv: ["sh", "-c", "su -c id root </dev/null; echo; id -u"] })
    expect(su.stdout.toString().trim()).toMatch(/^[1-9]\d*$/)
  })
})

describe("the end", () => {
  it("reaches whoever left session, parent and environment behind", async () => {
    for (const end of ["stop", "destroy"] as const) {
      await using sandbox = await use()
      const escaped = Number(await attack(sandbox, "escape"))
      expect(isRunning(escaped)).toBe(true)
      if (end === "stop") await driver.stop(sandbox.id, 50)
      else await driver.destroy(sandbox.id)
      expect(isRunning(escaped)).toBe(false)
      await sandbox.ended
    }
  })

  it("comes with init's, even when a program inside kills it", async () => {
    await using sandbox = await use()
    const { keeper, init } = processesOf(sandbox.id)
    const escaped = Number(await attack(sandbox, "escape"))
    await exec(sandbox, { argv: ["sh", "-c", `kill -9 ${init}`] }).catch(() => undefined)
    await sandbox.ended
    expect([keeper, init, escaped].filter(isRunning)).toEqual([])
    await driver.stop(sandbox.id)
    await driver.start(sandbox.id, never)
  })

  it("reaches what a keeper left that died before its time", async ({ skip }) => {
    if (isPerson) return skip("without a uid of its own and without a cgroup, only the environment tells whose it is")
    await using sandbox = await use()
    const { keeper, init } = processesOf(sandbox.id)
    const escaped = Number(await attack(sandbox, "escape"))
    process.kill(keeper, "SIGKILL")
    await sandbox.ended
    await driver.stop(sandbox.id)
    expect([keeper, init, escaped].filter(isRunning)).toEqual([])
  })

  it("reaches what is paused", async ({ skip }) => {
    if (!driver.abilities.pause) return skip(driver.abilities.reasons["pause"])
    await using sandbox = await use()
    const escaped = Number(await attack(sandbox, "escape"))
    await (sandbox as unknown as { pause(): Promise<void> }).pause()
    await driver.destroy(sandbox.id)
    expect(isRunning(escaped)).toBe(false)
  })

  it("takes folders nobody may enter and paths longer than a path", async () => {
    const sandbox = await use()
    await exec(sandbox, {
      argv: [
        "sh",
        "-c",
        "mkdir -m 000 shut; i=0; while [ $i -lt 60 ]; do mkdir $1 && cd -P $1; i=$((i+1)); done",
        "sh",
        "d".repeat(200),
      ],
      cwd: "/workspace",
    })
    await driver.destroy(sandbox.id)
    expect(existsSync(join(subject.root, sandbox.id))).toBe(false)
  })
})

describe("the driver", () => {
  it("warns at every turn, and says what is missing", async () => {
    await using sandbox = await use()
    const warnings = logged.map((line) => JSON.parse(line) as { level: string; event: string; sandbox?: string })
    const loud = warnings.filter(({ level, event }) => level === "warn" && event === "insecure_process_tier")
    expect(loud.some((line) => line.sandbox === undefined)).toBe(true)
    expect(loud.some((line) => line.sandbox === sandbox.id)).toBe(true)
    expect((await sandbox.posture()).degraded).toContain("insecure_process_tier")
    expect(driver.abilities.reasons["insecure_process_tier"]).toMatch(/not a security boundary/)
    for (const usual of ["shellTools", "browserTools", "namespaces", "ports"] as const) {
      expect(lackOf(driver, usual)).toMatch(/\w/)
    }
    expect((await driver.probe()).filter(({ isMet }) => !isMet).map(({ name }) => name)).toEqual(
      isPerson ? ["cgroups"] : [],
    )
  })

  it("refuses what it cannot give", async () => {
    const mounts = [{ from: "/usr", to: "/mnt", isReadOnly: true }]
    await expect(driver.create(spec({ mounts }), never)).rejects.toMatchObject({ code: "unsupported" })
    const image = { layers: ["/usr"] }
    await expect(driver.create(spec({ image }), never)).rejects.toMatchObject({ code: "unsupported" })
    const networks: Network[] = [{ mode: "proxy", folder: outside }, { mode: "bridge" }, { mode: "host" }]
    for (const network of networks) {
      const asked = spec({ network })
      const refusal = { code: "unsupported", hint: expect.stringMatching(/none/) as string }
      await expect(driver.create(asked, never)).rejects.toMatchObject(refusal)
      expect(await driver.exists(asked.id)).toBe(false)
    }
  })
})
