import { connectPort } from "@warren/drivers/init/port.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { GatewaySystem } from "../gateway/testing/gateway-system.ts"
import { serviceLimits } from "./limits.ts"
import { recipes } from "./recipes.ts"

/** Stands where code-server would, listens as it is told, and ends when it is asked to. */
const editor = `#!/usr/bin/env node
const at = process.argv.indexOf("--socket") + 1
require("http").createServer((request, response) => {
  if (request.url === "/die") process.exit(7)
  response.end("an editor of " + process.pid + " at " + request.url)
}).listen(process.argv[at])
`

describe.skipIf(process.getuid?.() !== 0)("services", { timeout: 180_000 }, () => {
  const system = new GatewaySystem()
  let session = ""
  const start = (name: "vscode" | "desktop" | "browser", id = session) =>
    system.ask.call("service.start", { session: id, name })
  const stateOf = async (name: string, id = session) =>
    (await system.ask.call("service.list", { session: id })).services.find((one) => one.name === name)
  const install = async (id: string, text = editor): Promise<void> => {
    await system.ask.write(id, "/home/user/.local/bin/code-server", text)
    await system.ask.run(id, "chmod 755 ~/.local/bin/code-server")
  }
  const until = async (holds: () => Promise<boolean>): Promise<void> => {
    while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 50))
  }
  beforeAll(async () => {
    await system.open()
    const limits = { memoryBytes: 2 ** 30, pidsMax: 512 }
    session = (await system.ask.call("session.create", { network: { mode: "none" }, limits })).id
  }, 120_000)
  afterAll(() => system[Symbol.asyncDispose](), 60_000)

  it("that an image lacks are refused with how to get them, and are not tried again and again", async () => {
    await expect(start("vscode")).rejects.toMatchObject({
      code: "unsupported",
      hint: expect.stringContaining("code-server"),
    })
    expect(await stateOf("vscode")).toMatchObject({ state: "failed", restarts: 0 })
  })

  it("are fetched where that can be: who reaches nothing, or not that host, is told; others say how they are had", async () => {
    const install = (id: string, name: "vscode" | "desktop" = "vscode") =>
      system.ask.call("service.install", { session: id, name })
    await expect(install(session)).rejects.toMatchObject({
      code: "unsupported",
      message: expect.stringContaining("no network"),
    })
    await expect(install(session, "desktop")).rejects.toMatchObject({
      code: "unsupported",
      hint: expect.stringContaining("image `desktop`"),
    })
    const env = { npm_config_registry: "http://127.0.0.1:9/" }
    const { id } = await system.ask.call("session.create", { network: { mode: "proxy", allow: [] }, env })
    await expect(install(id)).rejects.toMatchObject({ code: "forbidden", subject: "host:registry.npmjs.org" })
    await system.ask.call("session.update", { id, network: { mode: "proxy", allow: ["*.npmjs.org"] } })
    // Twice is once; it fails, because nobody listens there, says so, and is over.
    expect(await Promise.all([install(id), install(id)])).toEqual([
      { terminal: "install-vscode" },
      { terminal: "install-vscode" },
    ])
    await using talk = await system.ask.open("terminal.attach", { session: id, name: "install-vscode" })
    let said = ""
    let code: unknown
    for (let item = await talk.next(); item !== undefined; item = await talk.next()) {
      if ("bytes" in item) said += String((item as unknown as { bytes: Buffer }).bytes)
      else if (item.ev === "exit") code = item.exitCode
    }
    expect(said).toContain("npm could not fetch it")
    expect(code).toBe(1)
    await expect(start("vscode", id)).rejects.toMatchObject({ code: "unsupported" })
  })

  it("are started once for everybody, reached, stopped, and started again", async () => {
    await install(session)
    const all = await Promise.all([start("vscode"), start("vscode"), start("vscode")])
    for (const one of all)
      expect(one).toMatchObject({
        state: "running",
        path: `/s/${session}/vscode/`,
        label: `vscode-${session.slice(4)}`,
      })
    expect((await system.ask.run(session, "pgrep -fc '[s]ocket-mode 600'")).stdout.trim()).toBe("1")
    expect(await system.ask.call("service.stop", { session, name: "vscode" })).toEqual({ wasRunning: true })
    expect(await system.ask.call("service.stop", { session, name: "vscode" })).toEqual({ wasRunning: false })
    expect(await stateOf("vscode")).toMatchObject({ state: "stopped" })
    await until(async () => (await system.ask.run(session, "pgrep -fc '[s]ocket-mode 600'")).stdout.trim() === "0")
    expect(await start("vscode")).toMatchObject({ state: "running" })
  })

  it("that end by themselves come back", async () => {
    await start("vscode")
    await system.ask.run(session, "pkill -f '[s]ocket-mode 600'")
    await until(async () => ((await stateOf("vscode"))?.restarts ?? 0) > 0)
    await until(async () => (await stateOf("vscode"))?.state === "running")
    expect(await start("vscode")).toMatchObject({ state: "running" })
  })

  it("that only fail are given up, with what they said", async () => {
    const { id } = await system.ask.call("session.create", { network: { mode: "none" } })
    await install(id, "#!/bin/sh\necho no such luck >&2; exit 9\n")
    await expect(start("vscode", id)).rejects.toMatchObject({ message: expect.stringContaining("no such luck") })
    expect(await stateOf("vscode", id)).toMatchObject({ state: "failed", restarts: serviceLimits.endsMax - 1 })
    await install(id)
    expect(await start("vscode", id)).toMatchObject({ state: "running" })
  })

  it("give way to sleep: a session with one hibernates, and it is started again when it is wanted", async () => {
    const idle = { afterMs: 1_000, action: "hibernate" as const }
    const { id } = await system.ask.call("session.create", { network: { mode: "none" }, idle })
    await install(id)
    await start("vscode", id)
    await until(async () => (await system.ask.call("session.get", { id })).state === "hibernated")
    await until(async () => (await stateOf("vscode", id))?.state === "stopped")
    expect((await system.ask.call("session.get", { id })).state).toBe("hibernated")
    expect(await start("vscode", id)).toMatchObject({ state: "running" })
  })

  it("a desktop speaks VNC on its socket, also over the locks of one that was killed in its sleep", async () => {
    // As a restored sandbox finds them: of processes that are none, or another's.
    const locks = `printf '%10d\\n' 1 > /tmp/.X1-lock; mkdir -p /tmp/.X11-unix ~/.config/chromium; : > /tmp/.X11-unix/X1
      ln -sfn elsewhere-1 ~/.config/chromium/SingletonLock`
    expect(await system.ask.run(session, locks)).toMatchObject({ exitCode: 0 })
    expect(await start("desktop")).toMatchObject({ state: "running", path: `/s/${session}/vnc/` })
    using use = await system.plane.engine.sessions.use(session, AbortSignal.timeout(10_000))
    const stream = await connectPort(use.live.sandbox, { path: recipes.desktop.socket ?? "" })
    const [hello] = await new Promise<Buffer[]>((resolve) =>
      stream.once("data", (data: Buffer) => resolve([data])).resume(),
    )
    stream.destroy()
    expect(String(hello)).toMatch(/^RFB 003\.\d{3}\n/)
    const seen = await system.ask.run(
      session,
      "readlink ~/.config/chromium/SingletonLock; DISPLAY=:1 xdpyinfo | grep dimensions",
    )
    expect(seen.stdout).not.toContain("elsewhere")
    expect(seen.stdout).toContain("1280x800")
  })

  it("a browser reads pages of the session and makes pictures of them", async () => {
    const page = `<title>A page</title><h1>hello</h1><script>document.body.append("from a script")</script><div style="height:3000px"></div>`
    const server = `require("http").createServer((q, a) => { a.statusCode = q.url === "/gone" ? 410 : 200; a.setHeader("content-type", "text/html"); a.end(${JSON.stringify(page)}) }).listen(8080)`
    await system.ask.call("process.spawn", { session, argv: ["node", "-e", server] })
    await system.ask.run(session, "until bash -c '< /dev/tcp/127.0.0.1/8080' 2>/dev/null; do sleep 0.02; done")
    const url = "http://localhost:8080/gone"
    const seen = await system.ask.call("browser.read", { session, url })
    expect(seen).toMatchObject({ url, status: 410, title: "A page", isCut: false })
    expect(seen.text).toContain("from a script")
    const shot = async (more: object): Promise<Buffer> => {
      await using talk = await system.ask.open("browser.screenshot", { session, url, width: 640, height: 480, ...more })
      const pieces: Buffer[] = []
      for (let item = await talk.next(); item !== undefined; item = await talk.next())
        pieces.push(Buffer.from((item as unknown as { bytes: Buffer }).bytes))
      return Buffer.concat(pieces)
    }
    const picture = await shot({})
    expect(picture.subarray(1, 4).toString()).toBe("PNG")
    expect([picture.readUInt32BE(16), picture.readUInt32BE(20)]).toEqual([640, 480])
    const whole = await shot({ isWhole: true })
    expect(whole.readUInt32BE(20)).toBeGreaterThan(3_000)
    expect((await shot({ format: "jpeg" })).subarray(0, 2).toString("hex")).toBe("ffd8")
    // More at once than it has windows for.
    const many = await Promise.all(Array.from({ length: 7 }, () => system.ask.call("browser.read", { session, url })))
    expect(many.every(({ title }) => title === "A page")).toBe(true)
  })

  it("a browser that is killed is another next time, and a page that is not there is a fault, not a wait", async () => {
    await start("browser")
    await system.ask.run(session, "pkill -9 -f '[h]eadless=new'")
    await until(async () => ((await stateOf("browser"))?.restarts ?? 0) > 0)
    const nobody = "http://localhost:9/"
    await expect(system.ask.call("browser.read", { session, url: nobody })).rejects.toMatchObject({
      code: "unavailable",
    })
    await expect(system.ask.call("browser.read", { session, url: "file:///etc/passwd" })).rejects.toThrow()
    expect(await system.ask.call("browser.read", { session, url: "data:text/html,<title>x</title>" })).toMatchObject({
      title: "x",
    })
    expect(await system.ask.call("service.stop", { session, name: "browser" })).toEqual({ wasRunning: true })
    await until(async () => (await system.ask.run(session, "pgrep -fc '[h]eadless=new'")).stdout.trim() === "0")
  })
})
