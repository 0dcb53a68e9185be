import { expect, test } from "vitest"
import { noWishes, sessionWishes } from "./wishes.ts"

test("nothing said is nothing asked for", () => {
  expect(sessionWishes(noWishes, [])).toEqual({})
})

test("a repository may be reached, and its key used, if there is one", () => {
  const wishes = { ...noWishes, agent: "opencode", repo: "acme/widgets" } as const
  expect(sessionWishes(wishes, [])).toEqual({ network: { mode: "proxy", allow: ["github.com"] } })
  expect(sessionWishes(wishes, ["GIT_TOKEN", "ANTHROPIC_API_KEY"])).toEqual({
    network: { mode: "proxy", allow: ["github.com"] },
    keys: [{ scope: "llm:anthropic" }, { scope: "git:write", destination: "github.com" }],
  })
})

test("what was typed becomes what is asked for", () => {
  const wishes = {
    ...noWishes,
    name: "mine",
    network: { mode: "list", allow: "example.com\n *.npmjs.org, " },
    limits: { cpus: "2", memoryGb: "1.5", diskGb: "" },
    idleMinutes: "15",
  } as const
  expect(sessionWishes(wishes, [])).toEqual({
    name: "mine",
    network: { mode: "proxy", access: "list", allow: ["example.com", "*.npmjs.org"] },
    limits: { cpus: 2, memoryBytes: 1.5 * 1024 ** 3 },
    idle: { afterMs: 900_000, action: "hibernate" },
  })
})
