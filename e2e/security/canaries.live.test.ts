import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest"
import { pidsOf, runnerOf, until } from "../users/machine.ts"
import { Canary, filesWith, memoryWith } from "./canary.ts"
import { People } from "./matrix/people.ts"
import { askingFor } from "./matrix/requests.ts"
import { rows } from "./matrix/rows.ts"
import { record } from "./results.ts"

/** Everything of alice's that is worth something, each where people put it. */
const planted = {
  env: new Canary(),
  file: new Canary(),
  argument: new Canary(),
  input: new Canary(),
  output: new Canary(),
  "program's memory": new Canary(),
  snapshot: new Canary(),
  secret: new Canary(),
  "given secret": new Canary(),
  "key for the broker": new Canary(),
  "workspace's file": new Canary(),
  memory: new Canary(),
  "row of her database": new Canary(),
  prompt: new Canary(),
  terminal: new Canary(),
  "variable of one command": new Canary(),
}
type Kind = keyof typeof planted
/** What only goes in: nobody is told it again, and nobody's disk has it. */
const sealed: readonly Kind[] = ["secret", "key for the broker"]
const some = (kinds: readonly Kind[]): Record<string, Canary> =>
  Object.fromEntries(kinds.map((kind) => [kind, planted[kind]]))

describe.skipIf(process.getuid?.() !== 0)("what alice keeps", { timeout: 240_000 }, () => {
  let people: People
  let failed = 0
  let watcher: Watcher
  let session = ""
  let looked = 0
  /** Tokens and passwords are canaries as they are. */
  let shown: Record<string, Canary>

  const none = (canaries: Record<string, Canary>, where: Readonly<Record<string, Buffer | string>>): void => {
    const found = Object.entries(where).flatMap(([place, bytes]) =>
      Object.entries(canaries).flatMap(([kind, canary]) => {
        looked++
        const form = canary.in(bytes)
        return form === undefined ? [] : [`${place}: ${kind}, ${form}`]
      }),
    )
    expect(found).toEqual([])
  }
  const noneIn = async (canaries: Record<string, Canary>, ...folders: string[]): Promise<void> => {
    looked += folders.length * Object.keys(canaries).length
    expect(folders.flatMap((folder) => filesWith(canaries, folder))).toEqual([])
    // Connections that were given up while nothing else was done are noticed before one is used.
    await new Promise((done) => setImmediate(done))
  }
  const homeOf = (name: string): string => `/home/${name}/.local/share/warren/runner`

  beforeAll(async () => {
    people = await People.open()
    watcher = await Watcher.open(people)
    session = await plantAll(people)
    shown = {
      token: new Canary(people.alice.token),
      "envd token": new Canary(people.alice.envd),
      cookie: cookieOf(people),
    }
  }, 240_000)
  afterEach(({ task }) => void (failed += task.result?.state === "fail" ? 1 : 0))
  afterAll(async () => {
    record("canaries", { bad: failed, cases: looked, planted: Object.keys(planted).length + 3, forms: 16 })
    await watcher?.[Symbol.asyncDispose]()
    await people?.[Symbol.asyncDispose]()
  }, 120_000)

  test("each is really there: she finds it herself", async () => {
    const { machine, alice } = people
    const ask = { token: alice.token, body: { cmd: "env; cat planted; cat /proc/[0-9]*/cmdline | tr '\\0' ' '" } }
    const { body } = await machine.ask(`/v1/sessions/${session}/exec`, ask)
    for (const kind of ["env", "file", "argument", "given secret"] as const)
      expect([kind, planted[kind].in(String(body["stdout"]))]).toEqual([kind, "as it is"])
    expect(filesWith(some(["file"]), `${homeOf(alice.name)}/sandboxes`).length).toBeGreaterThan(0)
    expect(memoryWith(some(["program's memory"]), memoryHolder(alice.name))).toEqual(["program's memory"])
  })

  test("no command line and no environment that another account can read had any of it, at any time", async () => {
    const { text, rounds } = await watcher.stop()
    expect(rounds).toBeGreaterThan(3)
    // What is in a sandbox is a process of the machine, too: what she herself put on its command line can be read there (M25).
    const { argument: _, ...others } = planted
    none({ ...others, ...shown }, { "/proc, as somebody else": text })
  })

  test("the control plane keeps none of it: database, audit, logs, what it says, metrics", async () => {
    const { machine } = people
    const token = await machine.rootToken()
    await noneIn({ ...planted, ...shown }, machine.at("machine"), machine.at("run"))
    const text = async (path: string): Promise<string> => {
      const headers = { authorization: `Bearer ${token}` }
      return (await fetch(`http://localhost:${machine.port}${path}`, { headers })).text()
    }
    const told = {
      "/metrics": await text("/metrics"),
      "the audit log": await text("/v1/audit/export"),
      users: await text("/v1/users"),
    }
    const pages = {
      "/": await text("/"),
      "/docs": await text("/docs"),
      "/join": await text("/join"),
      api: await text("/v1/openapi.json"),
    }
    none(
      { ...planted, ...shown },
      {
        ...told,
        ...pages,
        "what the launcher and all below it said": machine.launcher.stdout + machine.launcher.stderr,
      },
    )
  })

  test("her runner's logs have none of it, and what only goes in is on her own disk nowhere, nor told again", async () => {
    const { machine, alice } = people
    await noneIn(
      { ...planted, ...shown },
      `${homeOf(alice.name)}/logs`,
      `${homeOf(alice.name)}/ipc`,
      `${homeOf(alice.name)}/tmp`,
    )
    await noneIn(some(sealed), `/home/${alice.name}`)
    await noneIn(shown, `${homeOf(alice.name)}/internal`, `${homeOf(alice.name)}/logs`)
    for (const row of rows().filter(({ method, scope }) => method === "GET" && scope !== "admin" && scope !== "open")) {
      if (row.isSocket || /follow|events|watch|lines|feed|attach|screenshot|page/.test(row.path)) continue
      const { path } = askingFor(row, alice.things)
      const headers = { authorization: `Bearer ${alice.token}`, "x-api-key": alice.token }
      const answer = await fetch(`http://localhost:${machine.port}${path}`, { headers })
      none(some(sealed), { [row.route]: Buffer.from(await answer.arrayBuffer()) })
    }
  })

  test("a sandbox that may use a key through the broker has it nowhere: variables, files, memory of its programs", async () => {
    const { machine, alice } = people
    const cmd =
      "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; find / -xdev -type f -size -200k -newer /etc/hostname -exec cat {} + 2>/dev/null"
    const { body } = await machine.ask(`/v1/sessions/${session}/exec`, { token: alice.token, body: { cmd } })
    none(some(sealed), { "her sandbox": JSON.stringify(body) })
    const inside = pidsOf(alice.name).filter((pid) => pid !== runnerOf(alice.name) && isInside(pid))
    expect(inside.length).toBeGreaterThan(1)
    looked += inside.length * sealed.length
    expect(inside.flatMap((pid) => memoryWith(some(sealed), pid))).toEqual([])
  })

  test("bob has none of it: his answers, his home, his runner's memory, his sandbox", async () => {
    const { machine, alice, bob } = people
    for (const row of rows().filter(
      ({ method, about }) => method === "GET" && ["own", "session", "thing"].includes(about),
    )) {
      if (row.isSocket || /follow|events|watch|lines|feed|attach/.test(row.path)) continue
      const headers = { authorization: `Bearer ${bob.token}`, "x-api-key": bob.token }
      const answer = await fetch(`http://localhost:${machine.port}${askingFor(row, alice.things).path}`, { headers })
      none({ ...planted, ...shown }, { [row.route]: Buffer.from(await answer.arrayBuffer()) })
    }
    await noneIn(
      { ...planted, ...shown },
      `${homeOf(bob.name)}/internal`,
      `${homeOf(bob.name)}/logs`,
      `${homeOf(bob.name)}/ipc`,
    )
    expect(memoryWith({ ...planted, ...shown }, runnerOf(bob.name))).toEqual([])
    // Connections that were given up while nothing else was done are noticed before one is used.
    await new Promise((done) => setImmediate(done))
    const cmd =
      "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/mounts /proc/self/mountinfo; hostname; find / -xdev -name '*cny*'"
    const { body } = await machine.ask(`/v1/sessions/${bob.things.session}/exec`, { token: bob.token, body: { cmd } })
    none({ ...planted, ...shown }, { "his sandbox": JSON.stringify(body) })
  })

  test("killed by a fault of its own, her runner leaves none of it: no core, no report, no line; and debuggers have no door", async () => {
    const { machine, alice } = people
    const pid = runnerOf(alice.name)
    const control = pidsOf(machine.control)
    expect(control.length).toBeGreaterThan(0)
    for (const one of [pid, ...control, machine.launcher.child.pid ?? 0]) {
      expect(readFileSync(`/proc/${one}/limits`, "utf8")).toMatch(/^Max core file size\s+0\s/m)
      process.kill(one, "SIGUSR1")
    }
    expect((await machine.ask("/v1/sessions", { token: alice.token })).status).toBe(200)
    expect(inspectors()).toEqual([])
    process.kill(pid, "SIGSEGV")
    await until(async () => (await machine.ask(`/v1/sessions/${session}`, { token: alice.token })).status === 200)
    expect(runnerOf(alice.name)).not.toBe(pid)
    await noneIn({ ...planted, ...shown }, `${homeOf(alice.name)}/logs`, machine.at("machine"), machine.at("run"))
    none({ ...planted, ...shown }, { "what the launcher said": machine.launcher.stdout + machine.launcher.stderr })
    expect(filesNamedCore([machine.at(""), `/home/${alice.name}`, homeOf(alice.name)])).toEqual([])
  })
})

async function plantAll({ machine, alice }: People): Promise<string> {
  const ask = async (path: string, body: object, method = "POST"): Promise<Record<string, unknown>> => {
    const answer = await machine.ask(path, { token: alice.token, body, method })
    if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer)}`)
    return answer.body
  }
  const text = (kind: Kind): string => planted[kind].text
  await ask("/v1/secrets/KEPT", { value: text("secret") }, "PUT")
  await ask("/v1/secrets/GIVEN", { value: text("given secret") }, "PUT")
  await ask("/v1/secrets/ANTHROPIC_API_KEY", { value: text("key for the broker") }, "PUT")
  const network = { mode: "allow", hosts: ["example.com"] }
  const wishes = { env: { PLANTED: text("env") }, secrets: ["GIVEN"], keys: [{ scope: "llm:anthropic" }] }
  const { id } = await ask("/v1/sessions", { name: "planted", ...wishes, network }).catch(() =>
    ask("/v1/sessions", { name: "planted", ...wishes }),
  )
  const at = `/v1/sessions/${String(id)}`
  await ask(`${at}/exec`, { cmd: "cat > planted", stdin: text("file") })
  await ask(`${at}/processes`, { argv: ["sh", "-c", "sleep 100000; true", text("argument")] })
  await ask(`${at}/exec`, { cmd: "cat > /dev/null", stdin: text("input") })
  await ask(`${at}/exec`, { cmd: "cat", stdin: text("output") })
  await ask(`${at}/exec`, { cmd: "true", env: { ONE: text("variable of one command") } })
  const half = text("program's memory")
  // Put together inside, so that it is nowhere but in its memory.
  const holder = `const w = Buffer.from(process.argv[1] + process.argv[2]); setInterval(() => w.length, 1e9)`
  await ask(`${at}/processes`, { argv: ["node", "-e", holder, half.slice(0, 15), half.slice(15)] })
  await ask(`${at}/exec`, { cmd: "cat > /home/user/s", stdin: text("snapshot") })
  await ask(`${at}/snapshots`, { name: "full" })
  await fetch(`http://localhost:${machine.port}/v1/workspaces/papers/content?path=kept`, {
    ...{ method: "PUT", body: text("workspace's file"), headers: { authorization: `Bearer ${alice.token}` } },
  })
  await ask("/v1/memories", { text: text("memory") })
  await ask("/v1/db/execute", {
    sql: "CREATE TABLE kept AS SELECT ? AS what",
    parameters: [text("row of her database")],
  })
  await ask(`${at}/agent`, { spec: { adapter: "scripted" } })
  await ask(`${at}/agent/prompts`, { text: `[[script:${JSON.stringify({ steps: [{ text: text("prompt") }] })}]]` })
  await ask(`${at}/terminals`, { name: "t", cmd: "printenv SHOWN; sleep 1000", env: { SHOWN: text("terminal") } })
  return String(id)
}

function cookieOf({ alice }: People): Canary {
  return new Canary(alice.cookie.split("=").slice(1).join("="))
}

/** Reads every command line and environment it can, as an account that has nothing to do with it, for as long as it lives. */
class Watcher implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #file: string

  private constructor(child: ChildProcess, file: string) {
    this.#child = child
    this.#file = file
  }

  static async open({ machine }: People): Promise<Watcher> {
    const file = machine.at("seen")
    writeFileSync(file, "")
    chmodSync(file, 0o666)
    const program = `
      const { readdirSync, readFileSync, appendFileSync } = require("node:fs")
      const seen = new Set()
      const look = () => {
        for (const pid of readdirSync("/proc")) if (+pid) for (const name of ["cmdline", "environ", "comm"]) {
          let text = ""
          try { text = readFileSync("/proc/" + pid + "/" + name, "latin1") } catch {}
          if (text !== "" && !seen.has(text) && +pid !== process.pid) { seen.add(text); appendFileSync(process.argv[1], text + "\\n", "latin1") }
        }
        appendFileSync(process.argv[1], "[round]\\n")
        setTimeout(look, 5)
      }
      console.log("looking"); look()`
    const who = ["--reuid", "daemon", "--regid", "daemon", "--clear-groups", "--inh-caps=-all"]
    const args = [...who, process.execPath, "-e", program, file]
    const child = spawn("setpriv", args, { cwd: "/", stdio: ["ignore", "pipe", "inherit"] })
    await once(child.stdout ?? child, "data")
    return new Watcher(child, file)
  }

  async stop(): Promise<{ readonly text: string; readonly rounds: number }> {
    await this[Symbol.asyncDispose]()
    const text = readFileSync(this.#file, "latin1")
    return { text, rounds: text.split("[round]").length - 1 }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, "exit")
    this.#child.kill("SIGKILL")
    await gone
  }
}

/** The program that has a canary in mind. */
function memoryHolder(name: string): number {
  const pid = pidsOf(name).find((one) => commandOf(one).includes("setInterval"))
  if (pid === undefined) throw new Error("it is not there")
  return pid
}

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8")
  } catch {
    return ""
  }
}

/** Those of a sandbox have a process tree of their own. */
function isInside(pid: number): boolean {
  try {
    return (/^NSpid:\t(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "").includes("\t")
  } catch {
    return false
  }
}

/** Ports where a debugger of Node's would listen. */
function inspectors(): string[] {
  const listening = ["tcp", "tcp6"].flatMap((kind) => readFileSync(`/proc/net/${kind}`, "utf8").split("\n").slice(1))
  return listening.filter((line) => /:240D [0-9A-F]+:0000 0A /.test(line))
}

function filesNamedCore(folders: readonly string[]): string[] {
  return folders.flatMap((folder) =>
    readdirSync(folder).filter((name) => /^core(\.\d+)?$|^report\.|heapsnapshot/.test(name)),
  )
}
