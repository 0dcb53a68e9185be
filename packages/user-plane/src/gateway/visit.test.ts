import { expect, test } from "vitest"
import type { Address } from "./address.ts"
import { setCookie } from "./visit.ts"

const at = (scheme: "http" | "https", prefix: string): Address => ({
  mode: prefix === "" ? "host" : "path",
  authority: { host: "web-1.warren.localhost", port: ":7777", scheme },
  session: "ses_00000000000000000000" as Address["session"],
  target: "web",
  prefix,
  path: "/",
  query: "",
})
const flags = (cookie: string): string[] => cookie.split("; ").filter((part) => !part.startsWith("Max-Age="))

test("a cookie is for one host and one preview's paths, for no script, and for no other site", () => {
  const [first, ...http] = flags(setCookie(at("http", ""), "value"))
  expect([first, ...http]).toEqual(["gateway_session=value", "Path=/", "HttpOnly", "SameSite=Lax"])
  expect(flags(setCookie(at("https", "/s/ses_1/t/web"), "value"))).toEqual([
    ...["gateway_session=value", "Path=/s/ses_1/t/web/", "HttpOnly", "SameSite=Lax", "Secure"],
  ])
  expect(setCookie(at("https", ""), "value")).toMatch(/; Max-Age=\d+;/)
})

test("in a frame of another site it is for that site's frames alone", () => {
  expect(flags(setCookie(at("https", ""), "value", true))).toEqual([
    ...["gateway_session=value", "Path=/", "HttpOnly", "SameSite=None", "Secure", "Partitioned"],
  ])
})
