import { expect, test } from "vitest"
import { proxyEnvironment } from "./proxy-environment.ts"

test("the variables that programs look at, in both cases", () => {
  const environment = proxyEnvironment()
  expect(environment["HTTPS_PROXY"]).toBe("http://127.0.0.1:3128")
  const usual = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"]
  for (const name of usual) expect(environment[name.toLowerCase()]).toBe(environment[name])
  // With a scheme that httpx does not know, most Python clients of LLMs would not even start.
  for (const name of usual.slice(0, 3)) expect(environment[name]).toMatch(/^http:/)
  expect(environment).toMatchObject({ NODE_USE_ENV_PROXY: "1", YARN_HTTPS_PROXY: "http://127.0.0.1:3128" })
})
