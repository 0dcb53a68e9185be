import { expect, it } from "vitest"
import { View } from "./view.ts"

const view = new View({ folder: "/tmp/w", data: "/tmp/w/d" })

it("gives the sandbox's folders their host paths, and leaves others alone", () => {
  expect(view.path("/workspace")).toBe("/tmp/w/d/workspace")
  expect(view.path("/workspace/a b/c")).toBe("/tmp/w/d/workspace/a b/c")
  expect(view.path("/workspaces/a")).toBe("/workspaces/a")
  expect(view.path("/home/user/x")).toBe("/tmp/w/d/home/x")
  expect(view.path("/home/other")).toBe("/home/other")
  expect(view.path("/tmp/x")).toBe("/tmp/w/d/tmp/x")
  expect(view.path(view.path("/workspace/a"))).toBe("/tmp/w/d/workspace/a")
})

it("translates paths of requests and adds the environment to commands alone", () => {
  expect(view.request({ op: "file.move", from: "/workspace/a", to: "/tmp/b" })).toEqual({
    op: "file.move",
    from: "/tmp/w/d/workspace/a",
    to: "/tmp/w/d/tmp/b",
  })
  expect(view.request({ op: "spawn", argv: ["/workspace/x"], cwd: "/tmp", env: { HOME: "/mine", A: "1" } })).toEqual({
    op: "spawn",
    argv: ["/workspace/x"],
    cwd: "/tmp/w/d/tmp",
    env: { HOME: "/mine", TMPDIR: "/tmp/w/d/tmp", WORKSPACE: "/tmp/w/d/workspace", A: "1" },
  })
})
