import { once } from "node:events"
import { existsSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { chromium, type Browser, type Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Warren } from "../warren.ts"
import { ownHost } from "./door.ts"

const program = "/usr/bin/chromium"
const inside = 5000
const isHot = `document.title === "hot"`
/** A page as a dev server has it: modules, a WebSocket of its own, storage; and one that wants what is not its own. */
const server = `
  const { createServer } = require("node:http")
  const { createHash } = require("node:crypto")
  const pages = {
    "/": "<title>preview</title><h1>hello</h1><script type=module src=/app.js></script>",
    "/app.js": "try { localStorage.seen = 'yes' } catch {} const s = new WebSocket('ws://' + location.host + '/hot'); s.onopen = () => { document.title = 'hot' }",
    "/evil": "<title>evil</title><p>evil</p>",
  }
  const server = createServer((q, a) => {
    const page = pages[q.url.split("?")[0]]
    a.writeHead(page ? 200 : 404, { "content-type": q.url.startsWith("/app.js") ? "text/javascript" : "text/html", "x-cookie": q.headers.cookie || "none" })
    a.end(page || "")
  })
  server.on("upgrade", (q, s) => {
    const accept = createHash("sha1").update(q.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64")
    s.write("HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n")
    s.on("error", () => s.destroy()).resume()
  })
  server.listen(${inside}, "127.0.0.1")`

/** What a page tries on Warren, run in it. */
const attack = `async (places) => {
  const fetched = async (url, how) => {
    try {
      const answer = await fetch(url, { credentials: "include", ...how })
      return answer.type + " " + answer.status
    } catch {
      return "blocked"
    }
  }
  const found = { cookie: document.cookie }
  for (const place of places) {
    found["GET " + place] = await fetched(place + "/v1/sessions", {})
    found["POST " + place] = await fetched(place + "/v1/sessions", { method: "POST", body: "{}" })
    found["no-cors " + place] = await fetched(place + "/v1/sessions", { method: "POST", body: "{}", mode: "no-cors" })
    found["image " + place] = await new Promise((done) => {
      const image = new Image()
      image.onload = () => done("loaded")
      image.onerror = () => done("blocked")
      image.src = place + "/v1/sessions"
    })
    found["socket " + place] = await new Promise((done) => {
      const socket = new WebSocket(place.replace("http", "ws") + "/v1/sessions/x/terminals/main/attach")
      socket.onopen = () => done("open")
      socket.onerror = () => done("blocked")
    })
  }
  return found
}`

describe.skipIf(process.getuid?.() !== 0 || !existsSync(program))(
  "previews in a real browser",
  { timeout: 180_000 },
  () => {
    let warren: Warren
    let browser: Browser
    let session = ""
    const origin = (): string => `http://localhost:${warren.port}`
    const api = async (method: string, path: string, body?: object) => {
      const headers = { authorization: `Bearer ${await warren.token()}`, "content-type": "application/json" }
      const answer = await fetch(`http://127.0.0.1:${warren.port}${path}`, {
        ...{ method, headers },
        ...(body ? { body: JSON.stringify(body) } : {}),
      })
      return (await answer.json()) as Record<string, string>
    }
    const opened = async (path = "/"): Promise<string> => {
      const { token } = await api("POST", `/v1/sessions/${session}/gateway-token`, {})
      return `/s/${session}/t/${inside}${path}?token=${token}`
    }
    const framed = async (page: Page, src: string) => {
      await page.evaluate(`{ const frame = document.createElement("iframe"); frame.onload = () => { frame.dataset.loaded = "yes" };
      frame.src = ${JSON.stringify(src)}; document.body.append(frame) }`)
      return await (await page.waitForSelector("iframe")).contentFrame()
    }
    /** A browser of a person who is signed in. */
    const person = async () => {
      const context = await browser.newContext()
      const page = await context.newPage()
      await page.goto(`${origin()}/health`)
      return { context, page }
    }

    beforeAll(async () => {
      warren = await Warren.start()
      while (!/\/join#(\S+)/.test(warren.said)) await new Promise((done) => setTimeout(done, 25))
      session = String((await api("POST", "/v1/sessions", { network: { mode: "none" } }))["id"])
      await api("POST", `/v1/sessions/${session}/processes`, { argv: ["node", "-e", server] })
      const cmd = `until bash -c '< /dev/tcp/127.0.0.1/${inside}' 2>/dev/null; do sleep 0.02; done`
      await api("POST", `/v1/sessions/${session}/exec`, { cmd })
      browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] })
    }, 180_000)
    afterAll(async () => {
      await browser?.close()
      await warren?.[Symbol.asyncDispose]()
    }, 60_000)

    it("are opened from Warren at a name of their own, with modules, storage and hot reload", async () => {
      const { context, page } = await person()
      await page.goto(`${origin()}${await opened()}`)
      expect(page.url()).toBe(`http://${ownHost(session, inside, warren.port)}/`)
      await page.waitForFunction(isHot)
      await page.reload()
      await page.waitForFunction(isHot)
      await context.close()
    })

    it("are shown in frames of Warren's own page, at either of its names, and of nobody else's", async () => {
      const { context, page } = await person()
      // From another site's name browsers keep cookies for these frames alone, and some keep them from storing anything.
      for (const host of [`localhost:${warren.port}`, `warren.localhost:${warren.port}`]) {
        await page.goto(`http://${host}/health`)
        const frame = await framed(page, await opened())
        await frame?.waitForFunction(isHot)
        expect(frame?.url()).toBe(`http://${ownHost(session, inside, warren.port)}/`)
        expect(await frame?.textContent("h1")).toBe("hello")
      }
      // Another program on the same machine is another site's page, though it has nearly the same name.
      const other = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<p>other</p>"))
      other.listen(0, "127.0.0.1")
      await once(other, "listening")
      try {
        await page.goto(`http://localhost:${(other.address() as AddressInfo).port}/`)
        const frame = await framed(page, `http://${ownHost(session, inside, warren.port)}/`)
        await page.waitForFunction("document.querySelector('iframe').dataset.loaded === 'yes'")
        expect(frame?.url()).not.toContain("warren.localhost")
      } finally {
        other.close()
      }
      await context.close()
    })

    it("cannot read Warren's cookies, call its API, or reach what another preview has", async () => {
      const [, code] = /\/join#(\S+)/.exec(warren.said) ?? []
      const { context, page } = await person()
      const joined = await page.evaluate(
        async (body) => {
          const answer = await fetch("/v1/invites/redeem", {
            method: "POST",
            body,
            headers: { "content-type": "application/json" },
          })
          return answer.status
        },
        JSON.stringify({ code, password: "correct horse battery" }),
      )
      expect(joined).toBe(200)
      expect(await page.evaluate(async () => (await fetch("/v1/sessions")).status)).toBe(200)
      await page.goto(`${origin()}${await opened("/evil")}`)
      const api = [origin(), `http://warren.localhost:${warren.port}`, `http://127.0.0.1:${warren.port}`]
      const tried = (await page.evaluate(`(${attack})(${JSON.stringify(api)})`)) as Record<string, string>
      expect(tried["cookie"]).toBe("")
      for (const [what, outcome] of Object.entries(tried))
        if (what !== "cookie")
          expect([what, outcome]).toEqual([
            what,
            what.startsWith("no-cors") ? expect.stringMatching(/^opaque|^blocked/) : "blocked",
          ])
      // What could be sent blind was refused, and made nothing.
      const { items } = (await (await warren.get("/v1/sessions")).json()) as { items: unknown[] }
      expect(items).toHaveLength(1)
      const audit = (await (await warren.get("/v1/audit?limit=1000")).json()) as {
        items: { action: string; result: string }[]
      }
      expect(audit.items.filter(({ result }) => result === "forbidden").length).toBeGreaterThanOrEqual(3)
      // The program inside is shown neither Warren's cookie nor the gateway's.
      const [answer] = await Promise.all([
        page.waitForResponse((one) => one.url().includes("/app.js")),
        page.evaluate(() => fetch("/app.js")),
      ])
      expect(answer.headers()["x-cookie"]).toBe("none")
      await context.close()
    })
  },
)
