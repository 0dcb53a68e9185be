import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Fault } from "@warren/base/fault.ts"
import { errandOf } from "./errand.ts"

describe("errands", () => {
  test.each([
    ["GET", "/git/github.com/acme/widgets.git/info/refs?service=git-upload-pack", ["git:read", "git:write"]],
    ["GET", "/git/github.com/Acme/Widgets/info/refs?service=git-receive-pack", ["git:write"]],
    ["POST", "/git/github.com/acme/widgets/git-upload-pack", ["git:read", "git:write"]],
    ["POST", "/git/github.com/acme/widgets.git/git-receive-pack", ["git:write"]],
  ])("%s %s", (method, url, scopes) => {
    expect(errandOf(method, url)).toMatchObject({
      service: "git",
      scopes,
      host: "github.com",
      repository: "acme/widgets",
    })
  })

  test.each([
    ["GET", "/git/github.com/acme/widgets/info/refs"],
    ["GET", "/git/github.com/acme/widgets/info/refs?service=git-upload-archive"],
    ["GET", "/git/github.com/acme/widgets/info/refs?service=git-upload-pack&service=git-receive-pack"],
    ["POST", "/git/github.com/acme/widgets/info/refs?service=git-upload-pack"],
    ["GET", "/git/github.com/acme/widgets/git-upload-pack"],
    ["POST", "/git/github.com/acme/widgets/git-receive-pack?x"],
    ["GET", "/git/github.com/acme/widgets/HEAD"],
    ["GET", "/git/github.com/acme/widgets/objects/info/packs"],
    ["GET", "/git/user@evil.test/acme/widgets/info/refs?service=git-upload-pack"],
    ["POST", "/git/github.com/acme/../other/widgets/git-upload-pack"],
    ["POST", "/git/github.com/acme%2f..%2fother/git-upload-pack"],
    ["POST", "/anthropic/v1/../../x"],
    ["POST", "/anthropic/v1/\\..\\x"],
    ["POST", "/anthropic/v1/messages HTTP/1.1"],
    ["POST", "/anthropic/v1/messages\r\nX-Api-Key: mine"],
    ["POST", "/anthropic/v1/m\x00"],
    ["POST", "/anthropic/v1/ä"],
    ["GET", "/anthropic"],
    ["GET", "/"],
    ["GET", ""],
  ])("%s %s is none", (method, url) => expect(() => errandOf(method, url)).toThrow(Fault))

  test("what is sent on is a piece of what came, and stays where it is", () => {
    const url = fc.array(
      fc.constantFrom(
        "/",
        "..",
        ".",
        "v1",
        "anthropic",
        "git",
        "github.com",
        "%2e",
        "\\",
        "?",
        "#",
        "@",
        "a",
        "info/refs",
        "git-upload-pack",
      ),
      { maxLength: 14 },
    )
    fc.assert(
      fc.property(url, (parts) => {
        const text = `/anthropic/v1/${parts.join("")}`
        try {
          const { path } = errandOf("POST", text)
          expect(text.endsWith(path)).toBe(true)
          expect(new URL(path, "http://x").pathname).toMatch(/^\/v1\//)
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(Fault)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})
