import { expect, test } from "vitest"
import { addressOf } from "./repository-address.ts"

test.each([
  ["owner/name", { url: "https://github.com/owner/name.git", host: "github.com", path: "owner/name", name: "name" }],
  ["https://Git.Example/a/b.git", { host: "git.example", path: "a/b", name: "b" }],
  ["git@github.com:a/b.git", { host: "github.com", path: "a/b" }],
  ["ssh://git@host:22/a/b", { host: "host:22", path: "a/b" }],
  ["/srv/repos/x.git", { path: "/srv/repos/x", name: "x" }],
  ["file:///srv/repos/x", { path: "/srv/repos/x" }],
])("%s", (repo, address) => {
  expect(addressOf(repo)).toMatchObject(address)
})

test.each([
  "ssh://-oProxyCommand=touch/a/b",
  "git@-oProxyCommand=x:a/b",
  "https://example.com/../../etc",
  "https://example.com/a/./b",
  "https:///etc/passwd",
  "./x",
  "../x",
  "/srv/../etc",
  "-u",
  "ext::sh -c x",
  "https://token@example.com/a/b",
])("is no address, whoever reads it: %s", (repo) => {
  expect(() => addressOf(repo)).toThrow(expect.objectContaining({ code: "invalid" }))
})
