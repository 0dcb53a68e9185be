import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { Hono } from "hono"
import { afterEach, describe, expect, test } from "vitest"
import { BuiltFiles } from "./files.ts"
import { pageRoutes } from "./page.ts"

const folders: string[] = []
afterEach(() => Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true }))))

const script = "console.log('hello')\n".repeat(100)

async function built(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "warren-page-"))
  folders.push(folder)
  await mkdir(join(folder, "assets"))
  await writeFile(join(folder, "index.html"), "<!doctype html><title>Warren</title>")
  await writeFile(join(folder, "icon.svg"), "<svg/>")
  await writeFile(join(folder, ".stamp"), "secret")
  await writeFile(join(folder, "assets", "index-abc.js"), script)
  await writeFile(join(folder, "assets", "index-abc.js.gz"), gzipSync(script))
  return folder
}

async function page(): Promise<Hono> {
  const files = await BuiltFiles.open(await built())
  if (!files) throw new Error("nothing was built")
  const app = new Hono()
  app.route("/", pageRoutes(files, new URL("http://localhost:7777"), "warren.localhost"))
  app.notFound((c) => c.json({ error: "not the page's" }, 404))
  return app
}

describe("the page", () => {
  test.each([
    "/",
    "/new",
    "/images",
    "/settings/tokens",
    "/admin/users",
    "/join",
    "/s/fix-login",
    "/s/fix-login/files",
  ])("is there for every place it has: %s", async (path) => {
    const answer = await (await page()).request(path)
    expect([answer.status, await answer.text()]).toEqual([200, "<!doctype html><title>Warren</title>"])
    expect(answer.headers.get("cache-control")).toBe("no-cache")
  })

  test.each([
    "/v1/sessions",
    "/nowhere",
    "/newer",
    "/index.html",
    "/.stamp",
    "/assets/../.stamp",
    "/assets/index-abc.js.gz",
    "/s/ses_1/t/web/",
    "/s/ses_1/vscode/",
    "/s/ses_1/files/more",
    "//evil.example/new",
  ])("leaves to others what is not its own: %s", async (path) => {
    const answer = await (await page()).request(`http://localhost:7777${path}`)
    expect([path, answer.status]).toEqual([path, 404])
  })

  test("lets nothing run, load or frame it but what is its own", async () => {
    const policy = (await (await page()).request("/")).headers.get("content-security-policy") ?? ""
    const parts = new Map(policy.split("; ").map((part) => [part.split(" ")[0], part.split(" ").slice(1).join(" ")]))
    const { headers } = await (await page()).request("/")
    expect(headers.get("cross-origin-opener-policy")).toBe("same-origin")
    expect(headers.get("permissions-policy")).toMatch(/camera=\(\), microphone=\(\), geolocation=\(\)/)
    expect(headers.get("vary")).toBe("accept-encoding")
    // All of them: what is absent is either open (forms, the base) or would break the page.
    expect(Object.fromEntries(parts)).toEqual({
      "default-src": "'none'",
      "script-src": "'self'",
      "style-src": "'self' 'unsafe-inline'",
      "img-src": "'self' data: blob:",
      "font-src": "'self'",
      "connect-src": "'self'",
      "worker-src": "'self'",
      "frame-src": "'self' http://*.warren.localhost:7777",
      "form-action": "'self'",
      "frame-ancestors": "'none'",
      "base-uri": "'none'",
    })
  })

  test("sends files as small as they are taken, and those with a digest for ever", async () => {
    const app = await page()
    const get = async (accepted: string): Promise<[string | null, string | null, number]> => {
      const answer = await app.request("/assets/index-abc.js", { headers: { "accept-encoding": accepted } })
      const { length } = new Uint8Array(await answer.arrayBuffer())
      return [answer.headers.get("content-encoding"), answer.headers.get("cache-control"), length]
    }
    const forever = "public, max-age=31536000, immutable"
    expect(await get("gzip, br")).toEqual(["gzip", forever, gzipSync(script).length])
    expect(await get("")).toEqual([null, forever, script.length])
    expect(await get("gzip;q=0")).toEqual([null, forever, script.length])
    const icon = await app.request("/icon.svg")
    expect(icon.headers.get("cache-control")).toBe("public, max-age=3600")
    expect(icon.headers.get("content-security-policy")).toBe("default-src 'none'; style-src 'unsafe-inline'; sandbox")
  })

  test("is absent where nothing was built", async () => {
    expect(await BuiltFiles.open("/nonexistent")).toBeUndefined()
  })
})
