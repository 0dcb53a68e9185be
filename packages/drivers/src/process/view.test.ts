import { expect, it } from "vitest"
import { View } from "./view.ts"

const view = new View({ data: "/d" })

it("gives the sandbox's folders their host paths, and leaves others alone", () => {
  expect(view.path("/workspace")).toBe("/d/workspace")
  expect(view.path("/workspace/a b/c")).toBe("/d/workspace/a b/c")
  expect(view.path("/workspaces/a")).toBe("/workspaces/a")
  expect(view.path("/home/user/x")).toBe("/d/home/x")
  expect(view.path("/home/other")).toBe("/home/other")
  expect(view.path("/tmp/x")).toBe("/d/tmp/x")
})

it("translates paths of requests and adds the environment to commands alone", () => {
  expect(view.request({ op: "file.move", from: "/workspace/a", to: "/tmp/b" })).toEqual({
    op: "file.move",
    from: "/d/workspace/a",
    to: "/d/tmp/b",
  })
  expect(view.request({ op: "spawn", argv: ["/workspace/x"], cwd: "/tmp", env: { HOME: "/mine", A: "1" } })).toEqual({
    op: "spawn",
    argv: ["/workspace/x"],
    cwd: "/d/tmp",
    env: { HOME: "/mine", TMPDIR: "/d/tmp", WORKSPACE: "/d/workspace", A: "1" },
  })
})
