import { createPrivateKey } from "node:crypto"
import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import { resolve } from "node:path"
import { signGatewayToken } from "@warren/protocol/gateway-token.ts"
import { TokenScope } from "@warren/protocol/token-scope.ts"
import { ManyUsers } from "../../users/machine.ts"
import type { Things } from "./requests.ts"

/** Everything a member's token may be allowed. */
export const memberScopes = TokenScope.options.filter((scope) => scope !== "admin" && scope !== "metrics:read")
const password = "correct horse battery"

export interface Person {
  readonly name: string
  readonly cookie: string
  /** May do everything its owner may. */
  readonly token: string
  readonly things: Things
  /** What opens their sandbox to clients of E2B. */
  readonly envd: string
}

/** Two people on one machine, each with one of everything, and tokens of every kind. */
export class People implements AsyncDisposable {
  readonly machine: ManyUsers
  /** Unguessable, and in everything of alice's that says something. */
  readonly canary = `canary${randomBytes(12).toString("hex")}`
  alice!: Person
  bob!: Person
  readonly #without = new Map<string, string>()

  private constructor(machine: ManyUsers) {
    this.machine = machine
  }

  static async open(): Promise<People> {
    const people = new People(await ManyUsers.open())
    try {
      people.alice = await people.#person("alice", people.canary)
      people.bob = await people.#person("bob", "nothing")
    } catch (failure) {
      await people[Symbol.asyncDispose]()
      throw failure
    }
    return people
  }

  /** A token of alice's with everything but this scope. */
  async without(scope: string): Promise<string> {
    const known = this.#without.get(scope)
    if (known !== undefined) return known
    const token = await this.tokenOf(this.alice.cookie, { scopes: memberScopes.filter((one) => one !== scope) })
    this.#without.set(scope, token)
    return token
  }

  async tokenOf(cookie: string, body: object): Promise<string> {
    return String((await this.#made(cookie, body))["token"])
  }

  async revoked(): Promise<string> {
    const { token, about } = await this.#made(this.alice.cookie, { scopes: memberScopes })
    await this.#asAlice(`/v1/tokens/${(about as { id: string }).id}`, "DELETE")
    return String(token)
  }

  /** Its time is over: nobody waits a minute for that, so the minute is taken out of the books. */
  async expired(): Promise<string> {
    const { token, about } = await this.#made(this.alice.cookie, { scopes: memberScopes, lifeMs: 60_000 })
    const program = `const d = new (require("libsql"))(process.argv[1]); d.exec("PRAGMA busy_timeout = 5000")
      d.prepare("UPDATE tokens SET expires_at = 1 WHERE id = ?").run(process.argv[2])`
    const file = this.machine.at("machine", "control", "control.db")
    execFileSync(process.execPath, ["-e", program, file, (about as { id: string }).id], { cwd: resolve(".") })
    // What was kept about who may is forgotten with the next change.
    await this.revoked()
    return String(token)
  }

  /** Of somebody who may not come in any more. */
  async disabled(): Promise<string> {
    const name = this.machine.name("carol")
    const root = await this.machine.rootToken()
    const token = await this.tokenOf(await this.#cookieOf(name, root), { scopes: memberScopes })
    await this.machine.ask(`/v1/users/${name}`, { method: "PATCH", token: root, body: { isDisabled: true } })
    return token
  }

  /** Sees sessions whose names begin so, which alice's does not. */
  limited(): Promise<string> {
    return this.tokenOf(this.alice.cookie, { scopes: memberScopes, limits: { namePrefix: "other-" } })
  }

  /** What opens previews, signed by the control plane itself. */
  gatewayToken(whose: Person, session: string, port?: number): string {
    const key = createPrivateKey(readFileSync(this.machine.at("machine", "control", "statement.key")))
    return signGatewayToken(key, { user: whose.name, session, port, tools: true, lifeS: 600, now: Date.now() })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.machine[Symbol.asyncDispose]()
  }

  async #made(cookie: string, body: object): Promise<Readonly<Record<string, unknown>>> {
    const answer = await this.machine.ask("/v1/tokens", { headers: { cookie, origin: this.#origin }, body })
    if (answer.status !== 201) throw new Error(JSON.stringify(answer))
    return answer.body
  }

  get #origin(): string {
    return `http://localhost:${this.machine.port}`
  }

  #asAlice(path: string, method: string): Promise<unknown> {
    return this.machine.ask(path, { method, headers: { cookie: this.alice.cookie, origin: this.#origin } })
  }

  async #person(who: string, canary: string): Promise<Person> {
    const { machine } = this
    const name = machine.name(who)
    const cli = await machine.cli.run(["user", "create", name])
    if (cli.code !== 0) throw new Error(cli.stderr)
    const cookie = await this.#cookieOf(name, await machine.rootToken())
    const { token, about } = await this.#made(cookie, { scopes: memberScopes, label: "main" })
    const made = await this.#things(name, String(token), (about as { id: string }).id, canary)
    return { name, cookie, token: String(token), ...made }
  }

  /** Of a browser that came with an invite, as people do. */
  async #cookieOf(name: string, root: string): Promise<string> {
    const invite = await this.machine.ask("/v1/invites", { token: root, body: { name } })
    const body = JSON.stringify({ code: invite.body["code"], password })
    const came = await fetch(`${this.#origin}/v1/invites/redeem`, { method: "POST", body })
    return came.headers.getSetCookie()[0]?.split(";")[0] ?? ""
  }

  async #things(
    user: string,
    token: string,
    tokenId: string,
    canary: string,
  ): Promise<Pick<Person, "things" | "envd">> {
    const ask = async (path: string, body: object, method = "POST"): Promise<Record<string, unknown>> => {
      const answer = await this.machine.ask(path, { token, body, method })
      if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer)}`)
      return answer.body
    }
    const quiet = { network: { mode: "none" } }
    const labels = { about: canary.slice(0, 40) }
    const { id } = await ask("/v1/sessions", {
      ...quiet,
      name: `mine-${canary.slice(-8)}`,
      labels,
      env: { CANARY: canary },
    })
    const session = String(id)
    await ask("/v1/workspaces", { name: "papers" })
    await fetch(`${this.#origin}/v1/workspaces/papers/content?path=planted`, {
      ...{ method: "PUT", body: canary, headers: { authorization: `Bearer ${token}` } },
    })
    await ask("/v1/secrets/planted", { value: canary }, "PUT")
    const memory = await ask("/v1/memories", { text: canary })
    await ask(`/v1/sessions/${session}/exec`, { cmd: `echo ${canary} > /home/user/planted; echo ${canary} > planted` })
    const { pid } = await ask(`/v1/sessions/${session}/processes`, { argv: ["sh", "-c", "sleep 100000; true", canary] })
    const snapshot = await ask(`/v1/sessions/${session}/snapshots`, { name: "planted" })
    await ask("/v1/db/execute", { sql: `CREATE TABLE planted AS SELECT '${canary}' AS what` })
    const { sandboxID, envdAccessToken } = await ask("/e2b/sandboxes", {
      templateID: "base",
      timeout: 3600,
      envVars: { CANARY: canary },
    })
    const made = { memory: String(memory["id"]), snapshot: String(snapshot["id"]), pid: Number(pid), token: tokenId }
    const things = { user, session, sandbox: String(sandboxID), workspace: "papers", secret: "planted", ...made }
    return { things, envd: String(envdAccessToken) }
  }
}
