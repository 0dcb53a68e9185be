import { generateKeyPairSync } from "node:crypto"
import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs"
import { StatementSigner } from "@warren/protocol/statement.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { record } from "../security/results.ts"
import { ManyUsers, pidsOf, runnerOf, until } from "./machine.ts"
import { SessionFlood } from "./session-flood.ts"

/** WARREN_CREATES=1000 for the long form. */
const creates = Number(process.env["WARREN_CREATES"] ?? 30)
const quotaMax = 4
const servedMax = 5
const denied = /Permission denied|Operation not permitted|EACCES/

describe.skipIf(process.getuid?.() !== 0)("alice and bob on one machine", { timeout: 180_000 }, () => {
  let machine: ManyUsers
  let [alice, bob, aliceToken, bobToken, bobSession] = ["", "", "", "", ""]

  beforeAll(async () => {
    machine = await ManyUsers.open({ WARREN_POOL_MB: "16", WARREN_POOL_LEAST: "2" })
    ;[alice, bob] = [machine.name("alice"), machine.name("bob")]
    for (const name of [alice, bob]) {
      const made = await machine.cli.run(["user", "create", name])
      expect(made.stderr, made.stderr).toBe("")
    }
    aliceToken = await machine.tokenOf(alice)
    bobToken = await machine.tokenOf(bob)
    for (const token of [aliceToken, bobToken]) {
      const made = await machine.ask("/v1/sessions", { token, body: { name: "mine" } })
      expect(made.body).toMatchObject({ state: "running" })
      bobSession = String(made.body["id"])
    }
    const secret = { argv: ["sh", "-c", "echo of-bob > /home/user/secret"] }
    expect((await machine.ask("/v1/sessions/mine/exec", { token: bobToken, body: secret })).body["exitCode"]).toBe(0)
    await machine.ask("/v1/workspaces", { token: bobToken, body: { name: "bobs" } })
  }, 180_000)
  afterAll(() => machine?.[Symbol.asyncDispose](), 120_000)

  test("each runner is its user's, with no group and no capability of root's", () => {
    for (const name of [alice, bob]) {
      const status = readFileSync(`/proc/${runnerOf(name)}/status`, "utf8")
      const { uid } = lstatSync(`/home/${name}`)
      expect(status).toMatch(new RegExp(`^Uid:\\t${uid}\\t${uid}\\t${uid}\\t${uid}$`, "m"))
      expect(status).toMatch(/^Groups:\t ?$/m)
      for (const set of ["CapInh", "CapPrm", "CapEff", "CapAmb"])
        expect(status).toMatch(new RegExp(`^${set}:\\t0+$`, "m"))
      const names = readFileSync(`/proc/${runnerOf(name)}/environ`, "utf8")
        .split("\0")
        .map((one) => one.split("=")[0])
      expect(names).not.toContain("WARREN_MACHINE")
    }
  })

  test("from alice's token nothing of bob's is reachable, and each attempt is in the audit log", async () => {
    const paths = [
      `/v1/sessions/${bobSession}`,
      `/v1/sessions/${bobSession}/files/content?path=/home/user/secret`,
      `/v1/sessions/${bobSession}/files?path=/`,
      "/v1/workspaces/bobs",
      "/v1/workspaces/bobs/files",
      `/v1/sessions/..%2f..%2f${bob}%2fmine`,
      `/v1/users`,
    ]
    const root = await machine.rootToken()
    const refused = async (): Promise<number> => {
      const { body } = await machine.ask("/v1/audit?limit=500", { token: root })
      return (body["items"] as { result: string }[]).filter(({ result }) => result !== "ok").length
    }
    const before = await refused()
    for (const path of paths) {
      const answer = await machine.ask(path, {
        token: aliceToken,
        headers: { "x-warren-user": bob, "x-forwarded-user": bob },
      })
      expect([path, [403, 404, 422, 400].includes(answer.status)]).toEqual([path, true])
    }
    const exec = await machine.ask(`/v1/sessions/${bobSession}/exec`, { token: aliceToken, body: { argv: ["id"] } })
    expect(exec.status).toBe(404)
    const gone = await machine.ask(`/v1/sessions/${bobSession}`, { token: aliceToken, method: "DELETE" })
    expect(gone.status).toBe(404)
    const ticket = await machine.ask(`/v1/sessions/${bobSession}/gateway-token`, { token: aliceToken, body: {} })
    expect([403, 404]).toContain(ticket.status)
    expect((await machine.ask("/v1/account", { token: `${bobToken.slice(0, -1)}A` })).status).toBe(401)
    const own = await machine.ask("/v1/sessions/mine/exec", {
      token: aliceToken,
      body: { argv: ["cat", "/home/user/secret"] },
    })
    expect(own.body["stdout"]).not.toContain("of-bob")
    // Seven paths, exec, delete, gateway token, and a token that was tampered with.
    const attempts = paths.length + 4
    await until(async () => (await refused()) >= before + attempts)
  })

  test("from alice's sandbox nothing of bob's is there", async () => {
    for (const path of [`/home/${bob}`, machine.at("run", bob), machine.at("machine"), `/proc/${runnerOf(bob)}`]) {
      const body = { argv: ["ls", path] }
      const tried = await machine.ask("/v1/sessions/mine/exec", { token: aliceToken, body })
      expect(tried.body, path).toMatchObject({ exitCode: 2, stdout: "" })
    }
  })

  test("as alice, on the machine: no file, socket or process of bob's", async () => {
    const paths = [`/home/${bob}`, machine.at("run", bob), `${machine.at("run", bob)}/control.sock`]
    for (const path of paths)
      expect(await machine.attempt(alice, `cat '${path}' || ls '${path}/'`), path).toMatch(denied)
    await closedTo(alice, [bob])
    expect(await machine.attempt(alice, `ls ${machine.at("machine", "control")}`)).toMatch(denied)
    expect(await machine.attempt(alice, `cat ${machine.at("machine", "control", "token")}`)).toMatch(denied)
    expect(await machine.attempt(alice, connecting(machine.at("run", "launcher.sock")))).toMatch(denied)
    expect(await machine.attempt(alice, `echo x > ${machine.at("machine", "control", "statement.pub")}`)).toBeDefined()
    expect(await machine.attempt(alice, `touch ${machine.at("machine", "users", "x.json")}`)).toMatch(denied)
  })

  test("as the control plane's account: no file, database or memory of either", async () => {
    for (const name of [alice, bob]) {
      const data = `/home/${name}/.local/share/warren/runner`
      expect(existsSync(`${data}/internal/warren.db`)).toBe(true)
      for (const path of [
        `/home/${name}/`,
        `${data}/internal/warren.db`,
        `${data}/logs/access.log`,
        `${machine.at("run", name)}/`,
      ])
        expect(await machine.attempt(machine.control, `cat '${path}' || ls '${path}'`), path).toMatch(denied)
    }
    await closedTo(machine.control, [alice, bob])
  })

  test("as the control plane's account: their sockets answer nothing without a statement for that user, and note it", async () => {
    const socket = `${machine.at("run", bob)}/control.sock`
    expect(await machine.attempt(machine.control, connecting(socket))).toBeUndefined()
    const own = new StatementSigner(generateKeyPairSync("ed25519").privateKey, () => Date.now())
    const forged = own.sign({ user: bob, call: "session.list", scope: "sessions:read" })
    for (const statement of [undefined, forged, "nonsense"])
      expect(await machine.attempt(machine.control, asking(socket, statement))).toContain("forbidden")
    await machine.ask("/v1/sessions/mine", { token: bobToken })
    const noted = (): { user: string; call: string; result: string }[] =>
      readFileSync(`/home/${bob}/.local/share/warren/runner/logs/access.log`, "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { user: string; call: string; result: string })
    const isOk = expect.objectContaining({ user: bob, call: "session.get", result: "ok" }) as object
    // What was answered is noted a moment later.
    await expect.poll(noted, { timeout: 30_000 }).toContainEqual(isOk)
    const lines = noted()
    expect(
      lines.filter(({ call, result }) => call === "session.list" && result === "forbidden").length,
    ).toBeGreaterThanOrEqual(3)
    expect(lines.every(({ user }) => user === bob || user === "")).toBe(true)
  })

  test(
    `one who makes ${creates} sessions is told the limit, and takes no turn and nothing ready of another's (RES-22)`,
    { timeout: 180_000 + creates * 2_000 },
    async () => {
      const root = await machine.rootToken()
      const quota = (sessionsMax: number) =>
        machine.ask(`/v1/users/${alice}/quota`, { token: root, method: "PUT", body: { sessionsMax } })
      expect((await quota(quotaMax)).status).toBe(200)
      await until(async () => (await shelves(bobToken)).ready >= 2)
      const [alices, bobs] = [await shelves(aliceToken), await shelves(bobToken)]
      const flood = new SessionFlood(machine, aliceToken, creates)
      const served = await flood.while(() => oneAfterTheOther(bobToken))
      const refusal = { code: "limit", message: `${quotaMax} sessions are all that may be`, hint: "delete one first" }
      expect(flood.told).toEqual({ made: quotaMax - 1, [JSON.stringify(refusal)]: creates - quotaMax + 1 })
      expect(served.length).toBeGreaterThan(0)
      // Of each pool as many as its own user asked for.
      expect((await shelves(aliceToken)).asked - alices.asked).toBe(quotaMax - 1)
      expect((await shelves(bobToken)).asked - bobs.asked).toBe(served.length)
      expect(served[0]).toBe("pool")
      record("many-sessions", {
        cases: creates,
        refused: creates - quotaMax + 1,
        othersServed: served.length,
        othersFromPool: served.filter((one) => one === "pool").length,
        seconds: flood.seconds,
      })
      await flood.remove()
      expect((await quota(2_000)).status).toBe(200)
      await until(
        async () =>
          ((await machine.ask("/v1/sessions", { token: aliceToken })).body["items"] as unknown[]).length === 1,
      )
    },
  )

  test("a runner that hangs is its user's trouble only: 503 with a hint; killed, it comes back with its sessions", async () => {
    const pid = runnerOf(alice)
    process.kill(pid, "SIGSTOP")
    try {
      const [hung, other] = await Promise.all([
        machine.ask("/v1/sessions/mine", { token: aliceToken }),
        machine.ask("/v1/sessions/mine", { token: bobToken }),
      ])
      expect(hung.status).toBe(503)
      expect(hung.body).toMatchObject({ error: { hint: expect.stringContaining("try again") } })
      expect(other.status).toBe(200)
    } finally {
      process.kill(pid, "SIGCONT")
    }
    process.kill(pid, "SIGKILL")
    await until(async () => (await machine.ask("/v1/sessions/mine", { token: aliceToken })).status === 200)
    expect(runnerOf(alice)).not.toBe(pid)
  })

  test("created again is the same; a name that is taken or nonsense is refused and nothing is made", async () => {
    expect((await machine.cli.run(["user", "create", alice])).code).toBe(0)
    for (const name of ["root", "daemon", "../x", "A", "-rf", "x".repeat(40)])
      expect((await machine.cli.run(["user", "create", "--json", "--", name])).code, name).not.toBe(0)
    expect(readdirSync(machine.at("machine", "users")).toSorted()).toEqual([`${alice}.json`, `${bob}.json`])
  })

  test("disabled: the token and the sandboxes end at once, and deleted nothing is left", async () => {
    expect((await machine.cli.run(["user", "disable", alice])).code).toBe(0)
    expect((await machine.ask("/v1/sessions/mine", { token: aliceToken })).status).toBe(401)
    expect(pidsOf(alice)).toEqual([])
    for (const name of [alice, bob]) {
      expect((await machine.cli.run(["user", "delete", name])).code).not.toBe(0)
      expect(await machine.cli.run(["user", "delete", name, "--yes"])).toMatchObject({ code: 0 })
      expect(existsSync(`/home/${name}`)).toBe(false)
      for (const file of ["/etc/passwd", "/etc/group", "/etc/subuid", "/etc/subgid"])
        expect(readFileSync(file, "utf8")).not.toContain(name)
      expect(existsSync(`/sys/fs/cgroup/memory/warren-${name}`)).toBe(false)
    }
    expect((await machine.ask("/v1/sessions/mine", { token: bobToken })).status).toBe(401)
    expect(readdirSync(machine.at("machine", "users"))).toEqual([])
  })

  async function shelves(token: string): Promise<{ ready: number; asked: number }> {
    const { body } = await machine.ask("/v1/pools", { token })
    const pools = body["pools"] as { ready: number; hits: number; misses: number }[]
    const sum = (count: (pool: (typeof pools)[number]) => number): number =>
      pools.reduce((all, pool) => all + count(pool), 0)
    return { ready: sum(({ ready }) => ready), asked: sum(({ hits, misses }) => hits + misses) }
  }

  /** Where each session of somebody came from who makes a few, uses them and deletes them. */
  async function oneAfterTheOther(token: string): Promise<string[]> {
    const from: string[] = []
    for (let n = 0; n < servedMax; n++) {
      const made = await machine.ask("/v1/sessions", { token, body: {} })
      expect(made.body).toMatchObject({ state: "running" })
      from.push(String(made.body["acquireSource"]))
      const ran = await machine.ask(`/v1/sessions/${String(made.body["id"])}/exec`, { token, body: { argv: ["true"] } })
      expect(ran.body["exitCode"]).toBe(0)
      await machine.ask(`/v1/sessions/${String(made.body["id"])}`, { token, method: "DELETE" })
    }
    return from
  }

  async function closedTo(account: string, whose: readonly string[]): Promise<void> {
    for (const pid of whose.map(runnerOf)) {
      expect(await machine.attempt(account, `exec 3< /proc/${pid}/mem`)).toMatch(denied)
      expect(await machine.attempt(account, `cat /proc/${pid}/environ`)).toMatch(denied)
      expect(await machine.attempt(account, `kill -0 ${pid}`)).toMatch(denied)
    }
  }
})

/** A command that connects, and fails when it cannot. */
function connecting(socket: string): string {
  const program = `require("net").connect(process.argv[1]).on("error", (e) => { console.error(e.code); process.exit(1) }).on("connect", () => process.exit(0))`
  return `'${process.execPath}' -e '${program}' '${socket}'`
}

/** A command that asks for the sessions, as a program of its own would, and fails with what it is told. */
function asking(socket: string, statement: string | undefined): string {
  const program = `
    const frame = (o) => { const b = Buffer.from(JSON.stringify(o)); const h = Buffer.alloc(4); h.writeUInt32BE(b.length); return Buffer.concat([h, b]) }
    const s = require("net").connect(process.argv[1])
    s.write(frame({ hello: { version: 1, name: "nosy" } }))
    s.write(frame({ id: 1, call: "session.list", in: {}, statement: process.argv[2] || undefined }))
    let all = ""
    s.on("data", (d) => { all += d; if (/forbidden|"out"|items/.test(all)) { console.error(all); process.exit(1) } })
    s.on("close", () => { console.error("closed " + all); process.exit(1) })`
  return `'${process.execPath}' -e '${program}' '${socket}' '${statement ?? ""}'`
}
