import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect, test } from "vitest"
import { openStore } from "../store/store.ts"
import { needed, routesOf } from "./routes.ts"

test("who has no runner that runs is told who starts it: oneself, or with many users an administrator", async () => {
  await using folder = await TempFolder.make()
  await using store = await openStore(folder.at("control.db"), "")
  const root = { id: "usr_root", name: "root", role: "member", isDisabled: false, createdAt: 1 } as const
  await store.users.add(root)
  const many = routesOf(store.users, "/run/warren/{user}/control.sock")
  const hint = expect.stringMatching(/systemctl start warren-runner@root.*sudo warren launcher/) as string
  expect(await many(root)).toEqual({ socket: "/run/warren/root/control.sock", uid: 0, hint })
  expect(await many({ ...root, name: "nobody-here" })).toBeUndefined()
  await expect(needed(many)({ ...root, name: "nobody-here" })).rejects.toMatchObject({ code: "unavailable" })
  await store.users.setRoute(root.id, { socket: "/tmp/x.sock", uid: 7 })
  expect(await many(root)).toEqual({ socket: "/tmp/x.sock", uid: 7, hint })
  expect(await routesOf(store.users, "")(root)).toEqual({ socket: "/tmp/x.sock", uid: 7 })
})
