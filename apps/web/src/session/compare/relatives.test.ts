import type { SessionInfo } from "@warren/sdk/session.ts"
import { expect, test } from "vitest"
import { relativesOf } from "./relatives.ts"

const one = (id: string, parent?: string): SessionInfo => ({ id, name: id, ...(parent && { parent }) }) as SessionInfo

test("those a session has most in common with come first, and itself does not", () => {
  const all = [one("stranger"), one("root"), one("me", "root"), one("sister", "root"), one("child", "me")]
  const found = relativesOf(one("me", "root"), all).map(({ session, kin }) => [session.id, kin])
  expect(found).toEqual([
    ["child", "a fork of it"],
    ["sister", "forked from the same"],
    ["root", "its parent"],
    ["stranger", undefined],
  ])
  expect(relativesOf(one("me"), [one("me")])).toEqual([])
})
