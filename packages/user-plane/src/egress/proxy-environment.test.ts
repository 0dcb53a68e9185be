import { expect, test } from "vitest"
import { proxyEnvironment } from "./proxy-environment.ts"

test("the variables that programs look at, in both cases", () => {
  const environment = proxyEnvironment()
  expect(environment["HTTPS_PROXY"]).toBe("http://127.0.0.1:3128")
  expect(environment["all_proxy"]).toBe("socks5h://127.0.0.1:3128")
  expect(Object.keys(environment)).toHaveLength(8)
  for (const [name, value] of Object.entries(environment)) expect(environment[name.toLowerCase()]).toBe(value)
})
