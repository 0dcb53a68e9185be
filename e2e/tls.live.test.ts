import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { CliProgram } from "../apps/cli/src/testing/cli-program.ts"
import { ControlPlane } from "../apps/cli/src/users/control-plane.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { dist, Home } from "./runner/home.ts"
import { freePort } from "@warren/base/testing/free-port.ts"

const programs = process.env["WARREN_TEST_PROGRAMS"] ? resolve(process.env["WARREN_TEST_PROGRAMS"]) : dist
const cli = CliProgram.at(`${programs}/cli.js`)

let folder: TempFolder
beforeAll(async () => {
  folder = await TempFolder.make()
  authority("ours")
  authority("theirs")
})
afterAll(() => folder[Symbol.asyncDispose]())

const key = ["-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
const openssl = (...args: string[]): void => void execFileSync("openssl", args, { stdio: "ignore" })

/** An authority of one's own, and a certificate it has signed for this machine. */
function authority(name: string): void {
  const at = (file: string): string => folder.at(`${name}-${file}`)
  openssl("req", "-x509", ...key, "-subj", `/CN=${name}`, "-keyout", at("ca.key"), "-out", at("ca.pem"), "-days", "2")
  openssl("req", ...key, "-subj", "/CN=localhost", "-keyout", at("key.pem"), "-out", at("request.pem"))
  writeFileSync(at("names"), "subjectAltName=DNS:localhost\n")
  const signer = ["-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-CAcreateserial", "-days", "2"]
  openssl("x509", "-req", "-in", at("request.pem"), ...signer, "-extfile", at("names"), "-out", at("cert.pem"))
}

const shown = (): Record<string, string> => ({
  WARREN_TLS_CERT: folder.at("ours-cert.pem"),
  WARREN_TLS_KEY: folder.at("ours-key.pem"),
})

describe("a Warren with a certificate", () => {
  test("is started, looked at and asked for tokens like any other", { timeout: 120_000 }, async () => {
    await using home = new Home()
    const port = String(await freePort())
    const place = { WARREN_HOME: home.path, WARREN_PORT: port, WARREN_POOL_LEAST: "0", WARREN_POOL_MB: "0" }
    const here = cli.with({ ...place, ...shown() })
    const started = await here.run(["start", "--daemon", "--json"])
    try {
      expect([started.code, started.stderr]).toEqual([0, expect.any(String)])
      expect(JSON.parse(started.stdout)).toMatchObject({ url: `https://localhost:${port}` })
      expect((await here.run(["status"])).stdout).toContain(`https://localhost:${port}`)
      expect((await here.run(["token", "create"])).stdout).toMatch(/^wrn_/)
      // Who knows only the authority trusts what it has signed, and nothing else.
      const bySigner = (name: string) => cli.with({ ...place, WARREN_TLS_CA: folder.at(`${name}-ca.pem`) })
      expect((await bySigner("ours").run(["token", "ls"])).code).toBe(0)
      const misled = await bySigner("theirs").run(["token", "ls"])
      expect([misled.code, misled.stderr]).toEqual([8, expect.stringContaining("is not one of")])
      const plain = await cli.with(place).run(["token", "ls"])
      expect(plain.code).toBe(8)
    } finally {
      expect((await here.run(["stop"])).code).toBe(0)
    }
  })

  test("is asked about users by root, and told the token only if it is the right one", async () => {
    await using home = new Home()
    const port = await freePort()
    const env = { PATH: process.env["PATH"], WARREN_HOME: home.path, WARREN_PORT: String(port), ...shown() }
    const child = spawn(process.execPath, [`${programs}/control.js`], { env, stdio: ["ignore", "pipe", "ignore"] })
    try {
      await once(child.stdout, "data")
      child.stdout.resume()
      const address = { port, certificate: "", authority: folder.at("ours-ca.pem"), name: "localhost" }
      const at = (more: object) =>
        new ControlPlane({ machine: home.path, uid: process.getuid?.() ?? 0, address: { ...address, ...more } })
      const signal = AbortSignal.timeout(30_000)
      for (const more of [{}, { certificate: folder.at("ours-cert.pem"), authority: "" }]) {
        await at(more).check(signal)
        expect(await at(more).add("alice", "member", signal)).toBe(true)
        expect(await at(more).add("alice", "member", signal)).toBe(false)
        await at(more).setDisabled("alice", true, signal)
        await at(more).remove("alice", signal)
        await at(more).remove("alice", signal)
      }
      for (const more of [{ authority: folder.at("theirs-ca.pem") }, { authority: "" }, { name: "elsewhere" }]) {
        await expect(at(more).check(signal)).rejects.toMatchObject({ code: "unavailable" })
      }
    } finally {
      const gone = once(child, "exit")
      child.kill("SIGTERM")
      await gone
    }
  })
})
