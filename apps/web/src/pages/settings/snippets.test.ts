import { describe, expect, test } from "vitest"
import { snippetsFor } from "./snippets.ts"

const [url, token] = ["https://warren.example", "wrn_token"]

describe("snippets", () => {
  test("there is one for each world, ready to be pasted", () => {
    const snippets = snippetsFor(url, token)
    expect(snippets.map(({ name }) => name)).toEqual(["SDK", "curl", "MCP", "E2B"])
    for (const { name, code } of snippets)
      expect([code.includes(url), code.includes(token), name]).toEqual([true, true, name])
  })

  test("only clients of E2B need a key that looks like theirs", () => {
    const forms = Object.fromEntries(snippetsFor(url, token).map(({ name, form }) => [name, form]))
    expect(forms).toEqual({ SDK: "warren", curl: "warren", MCP: "warren", E2B: "e2b" })
  })
})
