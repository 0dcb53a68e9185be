import { execFileSync, spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { freePort } from "@warren/base/testing/free-port.ts"
import { CliProgram } from "../apps/cli/src/testing/cli-program.ts"
import { bundleProgram } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"

let folder: TempFolder
let program: string
let built: CliProgram
beforeAll(async () => {
  folder = await TempFolder.make()
  program = await bundleProgram(new URL("../apps/control/src/main.ts", import.meta.url), folder)
  built = await CliProgram.build()
})
afterAll(async () => {
  await built[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

/** A real control plane and the CLI beside it. */
class Pair implements AsyncDisposable {
  readonly cli: CliProgram
  readonly #child: ChildProcess

  private constructor(cli: CliProgram, child: ChildProcess) {
    this.cli = cli
    this.#child = child
  }

  static async start(name: string, more: Readonly<Record<string, string>> = {}): Promise<Pair> {
    const env = { WARREN_HOME: folder.at(name), WARREN_PORT: String(await freePort()), ...more }
    const child = spawn(process.execPath, [program], {
      env: { PATH: process.env["PATH"], ...env },
      stdio: ["ignore", "pipe", "ignore"],
    })
    // Its first line says that it is ready.
    await once(child.stdout, "data")
    child.stdout.resume()
    return new Pair(built.with(env), child)
  }

  async json(...words: string[]) {
    const { code, stdout, stderr } = await this.cli.run(["--json", ...words])
    return { code, said: JSON.parse(code === 0 ? stdout : stderr) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#child, "exit")
    this.#child.kill("SIGKILL")
    await gone
  }
}

describe("tokens", () => {
  test("are made, told once, listed and ended", async () => {
    await using pair = await Pair.start("life")
    const flags = ["--name", "ci", "--scope", "exec", "--expires", "2h", "--prefix", "ci-", "--sessions", "3"]
    const { said: made } = await pair.json("token", "create", ...flags)
    expect(made).toMatchObject({ label: "ci", scopes: ["exec"], limits: { namePrefix: "ci-", sessionsMax: 3 } })
    expect(made.token).toMatch(/^wrn_[\w-]{43}$/)
    expect(Date.parse(made.expiresAt) - Date.parse(made.createdAt)).toBe(2 * 3600_000)
    const plain = await pair.cli.run(["token", "create"])
    expect([plain.stdout, plain.stderr]).toEqual([
      expect.stringMatching(/^wrn_\S+\n$/),
      expect.stringContaining("not told"),
    ])
    const listed = await pair.cli.run(["token", "ls"])
    expect(listed.stdout).toContain(made.id)
    expect(listed.stdout).not.toContain(made.token)
    expect((await pair.json("token", "rm", made.id)).said).toEqual({ id: made.id, isDeleted: true })
    expect(await pair.json("token", "rm", made.id)).toMatchObject({ code: 3, said: { error: { code: "not_found" } } })
    expect((await pair.json("token", "ls")).said).toHaveLength(1)
  })

  test("what cannot be is refused", async () => {
    await using pair = await Pair.start("wrong")
    expect((await pair.cli.run(["token", "create", "--scope", "everything"])).stderr).toContain("sessions:read")
    expect((await pair.json("token", "create", "--name", "Not So")).said.error.code).toBe("invalid")
  })

  test("without a control plane, and on somebody else's port, the owner's token is not told", async () => {
    const lone = built.with({ WARREN_HOME: folder.at("none"), WARREN_PORT: String(await freePort()) })
    const { code, stderr } = await lone.run(["token", "ls"])
    expect([code, stderr]).toEqual([8, expect.stringContaining("warren start")])
  })

  test("with TLS they are the same, from the one that has the certificate only", async () => {
    const [cert, key, other] = [folder.at("c.pem"), folder.at("k.pem"), folder.at("o.pem")]
    for (const [out, keyOut] of [
      [cert, key],
      [other, folder.at("ok.pem")],
    ] as const) {
      const how = ["req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=w"]
      execFileSync("openssl", [...how, "-keyout", keyOut, "-out", out], { stdio: "ignore" })
    }
    await using pair = await Pair.start("tls", { WARREN_TLS_CERT: cert, WARREN_TLS_KEY: key })
    expect((await pair.json("token", "create")).said.token).toMatch(/^wrn_/)
    const misled = await pair.cli.with({ WARREN_TLS_CERT: other }).run(["token", "ls"])
    expect([misled.code, misled.stderr]).toEqual([8, expect.stringContaining("another certificate")])
  })
})

describe("login", () => {
  test("gives a link that signs its owner in, once", async () => {
    await using pair = await Pair.start("login")
    const { said } = await pair.json("login")
    const [origin, code] = String(said.link).split("/join#")
    const redeem = () =>
      fetch(`${origin}/v1/invites/redeem`, { method: "POST", body: JSON.stringify({ code }) }).then(
        ({ status }) => status,
      )
    expect(await redeem()).toBe(200)
    expect(await redeem()).toBeGreaterThanOrEqual(400)
  })
})
