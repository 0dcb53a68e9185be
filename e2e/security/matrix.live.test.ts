import { execFileSync } from "node:child_process"
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest"
import { Asker, socketsAmong } from "./matrix/asker.ts"
import { closedGateway } from "./matrix/gateways.ts"
import { closedEnvd, closedTools, toolNames, toolRows } from "./matrix/inside.ts"
import { People } from "./matrix/people.ts"
import { askingFor } from "./matrix/requests.ts"
import { publicRoutes } from "./matrix/routes.ts"
import { rows, type Row } from "./matrix/rows.ts"
import { portsOf, socketsOf } from "./matrix/sockets.ts"
import { refusedStatements } from "./matrix/statements.ts"
import { record } from "./results.ts"

const table = rows()
const atOnce = 8
/** Routes that somebody has to be known for. */
const known = table.filter(({ about }) => !["page", "login", "rest", "address"].includes(about))
/** Those that are WebSockets too are asked as both. */
const closed = [...known, ...socketsAmong(known.filter(({ isSocket }) => !isSocket))]

test("every route has a row, and every row a route", async () => {
  // A route that is new needs a line in matrix/rows.csv: who may, and what it is about.
  expect(table.map(({ route }) => route)).toEqual(await publicRoutes())
})

describe.skipIf(process.getuid?.() !== 0)("every route × everybody", { timeout: 240_000 }, () => {
  let people: People
  let failed = 0
  let asker: Asker
  /** Besides what is asked at the public door. */
  let more = 0

  const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}`, "x-api-key": token })
  const each = async (which: readonly Row[], wrong: (row: Row) => Promise<unknown>): Promise<void> => {
    const found: unknown[] = []
    for (let at = 0; at < which.length; at += atOnce) {
      const some = which.slice(at, at + atOnce)
      const said = await Promise.all(some.map(async (row) => [row.route, await wrong(row)] as const))
      found.push(...said.filter(([, what]) => what !== undefined))
    }
    expect(found).toEqual([])
  }

  beforeAll(async () => {
    people = await People.open()
    asker = new Asker(people.machine.port)
  }, 240_000)
  afterEach(({ task }) => void (failed += task.result?.state === "fail" ? 1 : 0))
  afterAll(async () => {
    record("authorisation-matrix", {
      bad: failed,
      cases: (asker?.asked ?? 0) + more,
      rows: table.length,
      principals: 9,
    })
    await people?.[Symbol.asyncDispose]()
  }, 120_000)

  test("nobody, nonsense, what was revoked and what is over: known to no route", async () => {
    const { alice, machine } = people
    const strangers: Record<string, Record<string, string>> = {
      nobody: {},
      nonsense: bearer(`wrn_${"A".repeat(43)}`),
      revoked: bearer(await people.revoked()),
      expired: bearer(await people.expired()),
      disabled: bearer(await people.disabled()),
      "a gateway's token": bearer(people.gatewayToken(alice, alice.things.session)),
      "a cookie that was made up": {
        cookie: alice.cookie.replace(/=.*/, `=${"A".repeat(43)}`),
        origin: `http://localhost:${machine.port}`,
      },
      "a cookie from another site": { cookie: alice.cookie, origin: "http://evil.example" },
    }
    for (const [who, headers] of Object.entries(strangers)) {
      const refused = who === "a cookie from another site" ? [401, 403] : [401]
      await each(closed, async (row) => {
        const { status, text } = await asker.ask(row, askingFor(row, alice.things), headers)
        return refused.includes(status) && !text.includes(people.canary)
          ? undefined
          : `${who}: ${status} ${text.slice(0, 200)}`
      })
    }
  })

  test("her own token, without the scope", async () => {
    const { alice } = people
    const scoped = closed.filter(({ scope }) => scope !== "any" && scope !== "admin" && scope !== "metrics:read")
    await each(scoped, async (row) => {
      const { status, text } = await asker.ask(
        row,
        askingFor(row, alice.things),
        bearer(await people.without(row.scope)),
      )
      return status === 403 && !text.includes(people.canary)
        ? undefined
        : `${row.scope}: ${status} ${text.slice(0, 200)}`
    })
  })

  test("what is the machine's is no member's", async () => {
    const { alice } = people
    await each(
      closed.filter(({ about }) => about === "machine"),
      async (row) => {
        const { status, text } = await asker.ask(row, askingFor(row, alice.things), bearer(alice.token))
        return status === 403 ? undefined : `${status} ${text.slice(0, 200)}`
      },
    )
  })

  test("her token for sessions of other names finds none of this one", async () => {
    const { alice } = people
    const limited = await people.limited()
    const about = closed.filter(
      ({ isShutToLimited, about, method }) => isShutToLimited || (about === "own" && method === "GET"),
    )
    await each(about, async (row) => {
      const { status, text } = await asker.ask(row, askingFor(row, alice.things), bearer(limited))
      const isShut = row.isQuiet ? status < 500 : status >= 400 && status < 500
      if (text.includes(alice.things.session) && status < 400 && !row.isQuiet)
        return `tells of it: ${text.slice(0, 200)}`
      return isShut || !row.isShutToLimited ? undefined : `${status} ${text.slice(0, 200)}`
    })
  })

  test("bob's token finds nothing of hers, and changes nothing of hers", async () => {
    const { alice, bob } = people
    const before = await hers()
    const about = closed.filter(
      ({ about, method }) => ["session", "thing"].includes(about) || (about === "own" && method === "GET"),
    )
    await each(about, async (row) => {
      const { status, text } = await asker.ask(row, askingFor(row, alice.things), bearer(bob.token))
      if (text.includes(people.canary)) return `tells: ${text.slice(0, 200)}`
      const isAbsent = status >= 400 && status < 500
      // A name that both have is his own.
      const isHis = row.about === "thing" && /workspaces|secrets|volumes|templates/.test(row.path)
      return isAbsent || row.isQuiet || isHis || row.about === "own" ? undefined : `${status} ${text.slice(0, 200)}`
    })
    expect(await hers()).toEqual(before)
  })

  /** What there is of alice's, as she sees it. */
  async function hers(): Promise<unknown> {
    const { machine, alice } = people
    const paths = [
      "/v1/sessions",
      "/v1/workspaces",
      "/v1/workspaces/papers/files",
      "/v1/secrets",
      "/v1/memories",
      "/v1/snapshots",
      "/v1/tunnels",
    ]
    const all = [
      ...paths,
      `/v1/sessions/${alice.things.session}/processes`,
      `/v1/sessions/${alice.things.session}/files?path=/home/user`,
    ]
    return Promise.all(all.map(async (path) => steady((await machine.ask(path, { token: alice.token })).body)))
  }

  test("a key that may only look is not told what opens her sandbox", async () => {
    const { alice, machine } = people
    for (const scopes of [["sessions:read"], ["sessions:read", "sessions:write", "files:read"]]) {
      const token = await people.tokenOf(alice.cookie, { scopes })
      for (const verb of ["connect", "resume"]) {
        const path = `/e2b/sandboxes/${alice.things.sandbox}/${verb}`
        const { status, body } = await machine.ask(path, { token, body: { timeout: 1 } })
        expect([status, body["envdAccessToken"]]).toEqual([403, undefined])
      }
    }
    const path = `/e2b/sandboxes/${alice.things.sandbox}/connect`
    const told = await machine.ask(path, { token: await people.without("files:read"), body: { timeout: 1 } })
    expect(told.body["envdAccessToken"]).toMatch(/^[0-9a-f]{64}$/)
  })

  test("what opens by its address opens by no other", async () => {
    const { alice, bob } = people
    await each(
      table.filter(({ about }) => about === "address"),
      async (row) => {
        for (const headers of [{}, bearer(bob.token), bearer(alice.token)]) {
          const { status, text } = await asker.ask(row, askingFor(row, alice.things), headers)
          if (status !== 401 || text.includes(people.canary)) return `${status} ${text.slice(0, 200)}`
        }
        return undefined
      },
    )
  })

  test("every call at the runner's socket, with every statement that is not one for it", async () => {
    const { asked, letIn } = await refusedStatements(people)
    expect(letIn).toEqual([])
    expect(asked).toBeGreaterThan(900)
    more += asked
  })

  test("every socket on the machine is one that is known, and shut to everybody else's account", async () => {
    const { paths, tried, wrong } = await socketsOf(people)
    expect(wrong).toEqual([])
    // The launcher's; of each of the two: the runner's three and each sandbox's.
    expect(paths.length).toBeGreaterThanOrEqual(1 + 2 * 4)
    more += tried
    // Its port is the control plane's own, or the launcher's, which keeps it for it.
    const { machine, alice, bob } = people
    const ports = portsOf([machine.control, alice.name, bob.name])
    expect(ports.filter(({ account, port }) => account !== machine.control || port !== machine.port)).toEqual([])
  })

  test("nobody makes, moves or takes away what somebody's socket is found by", async () => {
    const { machine, alice, bob } = people
    const runs = machine.at("run")
    const places = [runs, `${runs}/${alice.name}`, `/home/${alice.name}/.local/share/warren/runner/ipc`]
    const names = ["control.sock", "gateway.sock", "rpc.sock", "launcher.sock", machine.name("carol"), alice.name]
    const attempts = places.flatMap((place) =>
      names.flatMap((name) => {
        const at = `'${place}/${name}'`
        return [
          `mkdir ${at}.x`,
          `ln -sf /tmp ${at}.x`,
          `mv ${at} ${at}.x`,
          `rm -rf ${at}`,
          `chmod 777 ${at} '${place}'`,
        ]
      }),
    )
    const before = socketPlaces(runs)
    for (const account of [bob.name, "daemon"]) {
      const tried = attempts.map((attempt) => `if ${attempt} 2>/dev/null; then echo "${attempt}" >> $done; fi`)
      const script = `done=$(mktemp); ${tried.join("; ")}; cat $done >&2; test ! -s $done; is=$?; rm $done; exit $is`
      // Taking away what is not there succeeds, for anybody.
      const succeeded = ((await machine.attempt(account, script)) ?? "")
        .split("\n")
        .filter((line) => line !== "" && !line.startsWith("rm -rf"))
      expect([account, succeeded]).toEqual([account, []])
      more += attempts.length
    }
    expect(socketPlaces(runs)).toEqual(before)
    expect((await machine.ask("/v1/sessions", { token: alice.token })).status).toBe(200)
  })

  test("every place of a gateway × everybody", async () => {
    const { asked, wrong } = await closedGateway(people)
    expect(wrong).toEqual([])
    more += asked
  })

  test("every path of envd × everybody, and every tool of MCP × everybody; a tool without a row is none", async () => {
    expect(toolRows().map(({ tool }) => tool)).toEqual(toolNames())
    const [envd, mcp] = [await closedEnvd(people), await closedTools(people)]
    expect([...envd.wrong, ...mcp.wrong]).toEqual([])
    more += envd.asked + mcp.asked
  })

  test("its owner is let in: none of this is shut because everything is", async () => {
    const { alice, machine } = people
    const root = await machine.rootToken()
    const absent = {
      ...alice.things,
      session: `ses_${"0".repeat(20)}`,
      sandbox: "0".repeat(40),
      pid: 1,
      user: "nobody-at-all",
      workspace: "absent",
      secret: "absent",
    }
    const gone = {
      ...absent,
      memory: `mem_${"0".repeat(20)}`,
      snapshot: `snp_${"0".repeat(20)}`,
      token: `tok_${"0".repeat(20)}`,
    }
    await each(closed, async (row) => {
      const token = row.about === "machine" ? root : alice.token
      const { status, text } = await asker.ask(row, askingFor(row, gone), bearer(token))
      if (text.includes("the current password is wrong")) return undefined
      return status !== 401 && status !== 403 && status < 500 ? undefined : `${status} ${text.slice(0, 200)}`
    })
  })
})

/** Without what time alone changes. */
function steady(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, one: unknown) => (/At$|cpu|idle|usedBytes/i.test(key) ? undefined : one)),
  )
}

/** With their kinds, owners and rights. */
function socketPlaces(folder: string): string {
  return execFileSync("find", [folder, "-printf", "%p %y %U:%G %m\\n"], { encoding: "utf8" })
}
