import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { lineOf } from "./line-of.ts"
import { readRunnerToml } from "./runner-toml.ts"

const whole = `# who works here
workspace_root = "/srv/warren"
default_driver = "oci"
port = 7000

[guest_images]
session = "base"

[users.alice]
[users.bob]
driver = "process"
account = "bob"

[agent]
env_keys = ["ANTHROPIC_API_KEY"]

[providers.openai]
api_key_env = "OPENAI_API_KEY"

[shell]
env_keys = [
  "NPM_TOKEN",
  "HTTP_PROXY",
]
`

describe("runner.toml", () => {
  test("is read", () => {
    const toml = readRunnerToml(whole, "runner.toml")
    expect(Object.keys(toml.users)).toEqual(["alice", "bob"])
    expect(toml.shell.env_keys).toEqual(["NPM_TOKEN", "HTTP_PROXY"])
    expect(toml.providers).toEqual({ openai: { api_key_env: "OPENAI_API_KEY" } })
    expect(readRunnerToml("", "runner.toml").users).toEqual({})
  })

  test.each([
    ["unknown at the top", whole.replace("port =", "prot ="), /^runner.toml:4: unknown key prot$/],
    [
      "unknown in a table",
      whole.replace('account = "bob"', 'memory = "1g"'),
      /^runner.toml:12: unknown key users.bob.memory$/,
    ],
    ["unknown table", `${whole}[telegram]\ntoken = "x"\n`, /^runner.toml:25: unknown key telegram$/],
    ["a driver that is not here", whole.replace('"oci"', '"microvm"'), /^runner.toml:3: default_driver: /],
    ["the wrong kind of value", whole.replace("7000", '"7000"'), /^runner.toml:4: port: /],
    [
      "a bad value in a list of several lines",
      whole.replace("HTTP_PROXY", "HTTP PROXY"),
      /^runner.toml:21: shell.env_keys.1: /,
    ],
    ["no TOML", whole.replace("[users.bob]", "[users.bob"), /^runner.toml:10: /],
    ["a user's name that is a path", whole.replace("users.bob", 'users."../bob"'), /^runner.toml:10: users/],
    ["users without a place", whole.replace("workspace_root", "# "), /^runner.toml:9: users.alice: needs/],
    ["a relative place", whole.replace('"/srv/warren"', '"warren"'), /^runner.toml:2: workspace_root: /],
    [
      "a reference that is no name",
      whole.replace("OPENAI_API_KEY", "sk-123"),
      /^runner.toml:18: providers.openai.api_key_env: /,
    ],
  ])("refuses %s, with its line", (_, text, message) => {
    expect(() => readRunnerToml(text, "runner.toml")).toThrow(message)
  })

  test("suggests the key that was meant", () => {
    expect(() => readRunnerToml("[shell]\nenv_key = []\n", "f")).toThrow(
      expect.objectContaining({ hint: "did you mean env_keys?" }),
    )
    expect(() => readRunnerToml('workspace_root = "/x"\n[users.a]\nquux = 1\n', "f")).toThrow(
      expect.objectContaining({ hint: expect.stringContaining("account") }),
    )
  })

  test("fed nonsense, it refuses and nothing else", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom("[", "]", "=", '"', "a", ".", "\n", "#") })),
        (text) => {
          try {
            readRunnerToml(text, "f")
          } catch (thrown) {
            expect(thrown).toMatchObject({ name: "Fault", code: "invalid" })
          }
        },
      ),
    )
  })

  test("the line of a key is where it begins", () => {
    expect(lineOf("a = 1\n\n# b\nb = [\n1,\n2,\n]\n", ["b"])).toBe(4)
    expect(lineOf("[a]\nb = 1\n[c]\nb = 2\n", ["c", "b"])).toBe(4)
  })
})
