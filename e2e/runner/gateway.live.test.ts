import { execFile } from "node:child_process"
import { generateKeyPairSync } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { userInfo } from "node:os"
import { dirname } from "node:path"
import { promisify } from "node:util"
import { signGatewayToken } from "@warren/protocol/gateway-token.ts"
import { controlKeyOf, gatewayMarkerOf, gatewaySocketOf } from "@warren/protocol/places.ts"
import { describe, expect, it } from "vitest"
import { Home } from "./home.ts"
import { Runner } from "./runner.ts"

const run = promisify(execFile)

describe.skipIf(process.getuid?.() !== 0)("the gateway of a runner", { timeout: 120_000 }, () => {
  it("is there for its owner, says where, answers to the control plane's tokens, and is gone when the runner ends", async () => {
    await using home = new Home()
    const [socket, marker] = [gatewaySocketOf(home.path), gatewayMarkerOf(home.path)]
    const { privateKey, publicKey } = generateKeyPairSync("ed25519")
    await using runner = await Runner.start(home)
    expect(statSync(socket).mode & 0o777).toBe(0o600)
    expect(readFileSync(marker, "utf8")).toBe(`unix:${socket}\n`)
    expect(statSync(marker).mode & 0o777).toBe(0o600)
    expect(await get(socket, "/health")).toEqual({ status: 200, body: '{"status":"ok"}' })
    await expect(
      run("setpriv", [
        "--reuid",
        "nobody",
        "--regid",
        "nogroup",
        "--clear-groups",
        "curl",
        "-s",
        "--unix-socket",
        socket,
        "http://localhost/health",
      ]),
    ).rejects.toThrow()

    const { id } = await runner.talk.call("session.create", { network: { mode: "none" } })
    const server = 'require("http").createServer((q, a) => a.end("hello from inside")).listen(8000)'
    await runner.talk.call("process.spawn", { session: id, argv: ["node", "-e", server] })
    await runner.talk.run(id, "until bash -c '< /dev/tcp/127.0.0.1/8000' 2>/dev/null; do sleep 0.02; done")
    const token = (): string =>
      signGatewayToken(privateKey, { user: userInfo().username, session: id, lifeS: 60, now: Date.now() })
    const path = `/s/${id}/t/8000/`
    // The control plane has not made its key yet.
    expect(await get(socket, path, token())).toMatchObject({ status: 401 })
    mkdirSync(dirname(controlKeyOf(home.path)), { recursive: true })
    writeFileSync(controlKeyOf(home.path), publicKey.export({ type: "spki", format: "pem" }))
    expect(await get(socket, path, token())).toEqual({ status: 200, body: "hello from inside" })
    const { entries } = await runner.talk.call("access.read", {})
    expect(entries.map(({ call, result }) => `${call} ${result}`)).toEqual([
      "gateway.request unauthenticated",
      "gateway.open ok",
    ])
    expect(entries[1]).toMatchObject({ user: userInfo().username, session: id })

    const { tunnel } = await runner.talk.call("tunnel.create", {
      session: id,
      name: "web",
      port: 8000,
      visibility: "public",
    })
    await runner.kill()
    // Killed, it could not take its marker along; the next one replaces it, and tunnels and programs are still there.
    expect(existsSync(marker)).toBe(true)
    // Nor the draft of one, or of anything else that was being made.
    const draft = home.at("tmp", ".gateway-endpoint.0123456789ab.tmp")
    writeFileSync(draft, "")
    mkdirSync(home.at("tmp", "half", "an-upload"), { recursive: true })
    await using next = await Runner.start(home)
    expect([existsSync(draft), existsSync(home.at("tmp", "half"))]).toEqual([false, false])
    expect(await get(socket, tunnel.path)).toEqual({ status: 200, body: "hello from inside" })
    await next.talk.call("session.delete", { id })
    expect(await next.stop()).toMatchObject({ code: 0 })
    expect(existsSync(marker)).toBe(false)
    expect(existsSync(socket)).toBe(false)
  })
})

function get(socketPath: string, path: string, token?: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const headers = { host: "localhost", ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) }
    const sent = request({ socketPath, path, headers, agent: false }, (incoming) => {
      let body = ""
      incoming.on("data", (piece: Buffer) => (body += piece.toString())).on("error", reject)
      incoming.on("end", () => resolve({ status: incoming.statusCode ?? 0, body }))
    })
    sent.on("error", reject).end()
  })
}
