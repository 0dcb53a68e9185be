import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { GatewaySystem } from "./testing/gateway-system.ts"
import { WebSocketClient } from "./testing/web-socket-client.ts"

describe.skipIf(process.getuid?.() !== 0)(
  "what Warren keeps in a session itself, at the gateway",
  { timeout: 120_000 },
  () => {
    const system = new GatewaySystem()
    let session = ""
    const token = (more: object = {}): string => system.token(session, { tools: true, ...more })
    const dial = async (path: string, protocol: string, origin = "http://localhost"): Promise<WebSocketClient> => {
      const { head, socket } = await system.upgrade(`/s/${session}${path}`, { headers: { origin }, protocol })
      expect(head).toMatch(/^HTTP\/1.1 101/)
      expect(head.toLowerCase()).toContain(`sec-websocket-protocol: ${protocol}`)
      return new WebSocketClient(socket)
    }

    beforeAll(async () => {
      await system.open()
      session = (await system.ask.call("session.create", { network: { mode: "none" } })).id
    }, 120_000)
    afterAll(() => system[Symbol.asyncDispose](), 60_000)

    it("a terminal speaks as ttyd does, to many, and is the one of the API", async () => {
      const { body, status, headers } = await system.get(`/s/${session}/ttyd/token?token=${token()}`)
      expect([status, body, headers["cache-control"]]).toEqual([200, '{"token":""}', "no-store"])
      using one = await dial(`/ttyd/ws?token=${token()}`, "tty")
      one.send('{"AuthToken":"","columns":90,"rows":20}')
      expect((await one.next()).toString()).toBe("1main")
      one.send("0stty size; echo shared-$((40 + 2))\r")
      expect(await one.until("shared-42")).toContain("20 90")
      using two = await dial(`/ttyd/ws?arg=main&token=${token()}`, "tty")
      two.send("{}")
      await two.until("shared-42")
      two.send('1{"columns":77,"rows":33}')
      two.send("0stty size\r")
      await one.until("33 77")
      const { terminals } = await system.ask.call("terminal.list", { session })
      expect(terminals).toMatchObject([{ name: "main", viewers: 2, size: { cols: 77, rows: 33 } }])
      // Nonsense is not heard, and nothing ends by it.
      for (const nonsense of ["", "9", "1{", '1{"columns":0,"rows":99999}', "\0"]) one.send(nonsense)
      one.send("2")
      two.send("0echo held-$((1 + 1))\r")
      await two.until("held-2")
      one.send("3")
      await one.until("held-2")
      one.send("0exit 5\r")
      expect(await one.ended()).toMatchObject({ code: 1000, reason: "ended with 5" })
    })

    it("a desktop is RFB in messages; a person who comes by is shown it in Warren's page", async () => {
      using client = await dial(`/vnc/websockify?token=${token()}`, "binary")
      expect((await client.next()).toString()).toMatch(/^RFB 003\.\d{3}\n$/)
      client.sendBytes(Buffer.from("RFB 003.008\n"))
      // One way of showing who one is: none.
      expect([...(await client.next())]).toEqual([1, 1])
      const shown = await system.get(`/s/${session}/vnc/?token=${token()}`, {
        headers: { "sec-fetch-mode": "navigate" },
      })
      expect([shown.status, shown.headers.location]).toEqual([303, `http://localhost/s/${session}/desktop`])
      const headers = { authorization: `Bearer ${token()}` }
      const named = await system.get("/", { host: system.ownHost(session, "vnc"), headers })
      expect([named.status, named.headers.location]).toEqual([303, `http://warren.localhost/s/${session}/desktop`])
      for (const [method, status] of [
        ["HEAD", 303],
        ["POST", 405],
        ["DELETE", 405],
      ] as const)
        expect((await system.get(`/s/${session}/vnc/`, { method, headers })).status).toBe(status)
    })

    it("a terminal is a page of its own, at a name of its own and nowhere else", async () => {
      const navigate = { "sec-fetch-mode": "navigate", accept: "text/html" }
      const host = system.ownHost(session, "ttyd")
      // Who comes by path is sent on to the name, with a ticket for it; the ticket becomes a cookie, and what was asked for stays.
      const byPath = await system.get(`/s/${session}/ttyd/?arg=mine&token=${token()}`, { headers: navigate })
      const onward = new URL(byPath.headers.location ?? "")
      expect([byPath.status, onward.host, onward.searchParams.get("arg")]).toEqual([303, host, "mine"])
      const entered = await system.get(`${onward.pathname}${onward.search}`, { host, headers: navigate })
      expect([entered.status, entered.headers.location]).toEqual([303, "/?arg=mine"])
      const cookie = entered.headers["set-cookie"]?.[0]?.split(";")[0] ?? ""
      const page = await system.get("/?arg=mine", { host, headers: { ...navigate, cookie } })
      expect([page.status, page.headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"])
      expect(page.headers["content-security-policy"]).toContain("script-src 'self'")
      const [script = ""] = /\/assets\/[\w-]+\.js/.exec(page.body) ?? []
      const loaded = await system.get(script, { host, headers: { cookie } })
      expect([loaded.status, loaded.headers["content-type"]]).toEqual([200, "text/javascript; charset=utf-8"])
      for (const path of ["/index.html", "/assets/nothing.js", "/assets/a%2fb.js", "/.stamp"])
        expect((await system.get(path, { host, headers: { cookie } })).status).toBe(404)
      expect((await system.get("/", { host, headers: navigate })).status).toBe(401)
      // Where there are no such names, it is shown in Warren's page.
      const path = `${system.root}/nameless.sock`
      await using _ = await system.gateway(path, { domain: "", hosts: ["localhost"] })
      const nameless = await system.getAt(path, `/s/${session}/ttyd/?token=${token()}`, { headers: navigate })
      expect([nameless.status, nameless.headers.location]).toEqual([303, `/s/${session}/ttyd/`])
      const given = nameless.headers["set-cookie"]?.[0]?.split(";")[0] ?? ""
      const shown = await system.getAt(path, `/s/${session}/ttyd/`, { headers: { ...navigate, cookie: given } })
      expect([shown.status, shown.headers.location]).toEqual([303, `http://localhost/s/${session}/terminal`])
    })

    it("an editor is started by who comes, and passed on to as any program", async () => {
      const missing = await system.get(`/s/${session}/vscode/`, { headers: { authorization: `Bearer ${token()}` } })
      expect(missing.status).toBe(422)
      expect(missing.body).toContain("code-server")
      const editor = `#!/usr/bin/env node
require("http").createServer((q, a) => a.end("editor " + q.url + " " + q.headers["x-forwarded-prefix"])).listen(process.argv[process.argv.indexOf("--socket") + 1])`
      await system.ask.write(session, "/home/user/.local/bin/code-server", editor)
      await system.ask.run(session, "chmod 755 ~/.local/bin/code-server")
      const { status, body } = await system.get(`/s/${session}/vscode/static/x?a=1`, {
        headers: { authorization: `Bearer ${token()}` },
      })
      expect([status, body]).toEqual([200, `editor /static/x?a=1 /s/${session}/vscode`])
      const { services } = await system.ask.call("service.list", { session })
      expect(services.find(({ name }) => name === "vscode")).toMatchObject({ state: "running" })
    })

    it("none of them is for who may reach ports only, for other pages, or for nobody", async () => {
      const refused = async (path: string, headers: Record<string, string>): Promise<number> => {
        const { head, socket } = await system.upgrade(`/s/${session}${path}`, { headers, protocol: "tty" })
        socket.destroy()
        return Number(/^HTTP\/1.1 (\d+)/.exec(head)?.[1])
      }
      const own = { origin: "http://localhost" }
      for (const path of ["/ttyd/ws", "/vnc/websockify", "/vscode/"]) {
        const mark = `${path}?token=`
        expect(await refused(path, own)).toBe(401)
        expect(await refused(`${mark}${token({ tools: false })}`, own)).toBe(403)
        expect(await refused(`${mark}${token({ port: 3000 })}`, own)).toBe(403)
        expect(await refused(`${mark}${token()}`, { origin: "http://evil.example" })).toBe(403)
        expect(await refused(`${mark}${token()}`, { origin: "null" })).toBe(403)
      }
      const spent = token()
      expect(await refused(`/ttyd/ws?token=${spent}`, own)).toBe(101)
      expect(await refused(`/ttyd/ws?token=${spent}`, own)).toBe(401)
    })

    it("a client that leaves, or says nothing it should, leaves nothing open", async () => {
      const { socket } = await system.upgrade(`/s/${session}/ttyd/ws?arg=gone&token=${token()}`, {
        headers: { origin: "http://localhost" },
        protocol: "tty",
      })
      const client = new WebSocketClient(socket)
      client.send('{"columns":80,"rows":24}')
      await client.next()
      socket.destroy()
      const viewers = async (): Promise<number | undefined> =>
        (await system.ask.call("terminal.list", { session })).terminals.find(({ name }) => name === "gone")?.viewers
      while ((await viewers()) !== 0) await new Promise((resolve) => setTimeout(resolve, 20))
    })

    it("a tunnel of the same name is there in its place", async () => {
      await system.serve(session)
      await system.ask.call("tunnel.create", { session, name: "ttyd", port: 3000 })
      const { body } = await system.get(`/s/${session}/ttyd/hello`, { headers: system.bearer(session) })
      expect(body).not.toContain("token")
      expect(await system.seen(session)).toBeDefined()
      await system.ask.call("tunnel.delete", { session, name: "ttyd" })
    })
  },
)
