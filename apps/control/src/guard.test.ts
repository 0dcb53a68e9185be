import { Hono } from "hono"
import { expect, test } from "vitest"
import { onlyOurs } from "./guard.ts"
import { TestControl } from "./testing/test-control.ts"

test.each([["evil.example"], ["localhost:1"], ["localhost:7777.evil.example"], ["127.0.0.1"], [""]])(
  "a host that is not ours is not served: %s",
  async (host) => {
    await using system = await TestControl.open()
    expect((await system.ask("/health", { headers: { host } })).status).toBe(403)
  },
)

const address = "https://warren.example"

/** A server with nothing but the guard, at a public address or at none. */
function guarded(publicUrl = address, hasTls = true): (headers: Record<string, string>) => Promise<Response> {
  const app = new Hono()
  app.use(onlyOurs(7777, new URL(publicUrl), hasTls))
  app.get("/", (c) => c.text("ours"))
  app.onError((_, c) => c.text("refused", 403))
  return async (headers) => await app.request("/", { headers })
}

test.each([
  ["x-content-type-options", "nosniff"],
  ["referrer-policy", "no-referrer"],
  ["x-frame-options", "DENY"],
  ["cross-origin-resource-policy", "same-origin"],
])("every answer says %s, also to who is refused", async (name, value) => {
  const ask = guarded()
  for (const host of ["warren.example", "evil.example"]) expect((await ask({ host })).headers.get(name)).toBe(value)
})

const hash = "'sha256-[A-Za-z0-9+/]{43}='"

test.each([
  [
    "/docs",
    "default-src 'none'",
    `style-src ${hash}`,
    "form-action 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ],
  [
    "/join",
    ...["default-src 'none'", `script-src ${hash}`, `style-src ${hash} 'unsafe-hashes' ${hash}`, "connect-src 'self'"],
    ...["form-action 'none'", "frame-ancestors 'none'", "base-uri 'none'"],
  ],
])("the page at %s may load, frame and send nothing but what is its own", async (path, ...parts) => {
  await using system = await TestControl.open()
  const { headers } = await system.ask(path)
  expect(headers.get("content-security-policy")).toMatch(new RegExp(`^${parts.join("; ")}$`))
})

test("a browser is held to TLS where the name is public, and nowhere else", async () => {
  const held = async (ask: ReturnType<typeof guarded>, host: string): Promise<string | null> =>
    (await ask({ host })).headers.get("strict-transport-security")
  expect(await held(guarded(), "warren.example")).toBe("max-age=31536000")
  expect(await held(guarded(), "localhost:7777")).toBeNull()
  expect(await held(guarded("https://localhost:7777"), "localhost:7777")).toBeNull()
  expect(await held(guarded("http://warren.example", false), "warren.example")).toBeNull()
})

test.each([
  [undefined, 200],
  [address, 200],
  ["https://localhost:7777", 200],
  ["http://localhost:7777", 403],
  ["https://evil.example", 403],
  ["https://warren.example.evil.example", 403],
  ["null", 403],
  ["", 403],
])("a page of %s is answered %i", async (origin, status) => {
  const headers = { host: "warren.example", ...(origin === undefined ? {} : { origin }) }
  expect((await guarded()(headers)).status).toBe(status)
})

test.each([
  ...["/", "/v1/sessions", "/a/b..c/...", "/a%2fb", "/?next=//x\\..", "/a?b=/../c", "/.well-known/x"].map((one) => [
    one,
    true,
  ]),
  ...["//evil.example/", "/a\\b", "\\", "/..", "/a/../b", "/./a", "/a/.", "/%2e%2E/a", "/a/.%2e", "/a/%2E"].map(
    (one) => [one, false],
  ),
  ...["http://warren.example/", "*", "", "a/b", "?a"].map((one) => [one, false]),
] as [string, boolean][])("a path that could mean another place is not served: %s", async (url, isServed) => {
  const app = new Hono()
  app.use(onlyOurs(7777, new URL(address), true))
  app.get("/", (c) => c.text("ours"))
  app.onError((_, c) => c.text("refused", 400))
  const { status } = await app.request("/", { headers: { host: "warren.example" } }, { incoming: { url } })
  expect(status).toBe(isServed ? 200 : 400)
})
