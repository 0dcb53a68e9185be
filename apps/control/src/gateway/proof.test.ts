import { generateKeyPairSync } from "node:crypto"
import { newId } from "@warren/base/id.ts"
import { signGatewayToken } from "@warren/protocol/gateway-token.ts"
import { describe, expect, test } from "vitest"
import { proofOf, withLiveCookies } from "./proof.ts"

const { privateKey, publicKey } = generateKeyPairSync("ed25519")
const now = 1_700_000_000_000
const session = newId("ses")
const secret = "s".repeat(43)

const tokenOf = (via?: string, user = "alice", key = privateKey, lifeS = 600): string =>
  signGatewayToken(key, { user, session, lifeS, now, via })
const bearer = (token: string): string[] => ["Authorization", `Bearer ${token}`]
const proof = (raw: readonly string[], url = "/") => proofOf(raw, url, publicKey, now)

describe("what a request is let in with goes back to", () => {
  test("what its token was asked for with, in a header or in a URL", () => {
    for (const shown of [
      proof(bearer(tokenOf("sin_1"))),
      proof(["AUTHORIZATION", `bearer   ${tokenOf("sin_1")}`]),
      proof([], `/x?a=1&token=${tokenOf("sin_1")}&b=2`),
    ])
      expect(shown).toMatchObject({ claims: { sub: "alice", sid: session }, vias: ["sin_1"] })
    expect(proof([], `/?token=tkt_${secret}.sin_2`)).toEqual({ claims: undefined, vias: ["sin_2"] })
    expect(proof(bearer(tokenOf()))).toMatchObject({ claims: { sub: "alice" }, vias: [] })
  })

  test("all of what it shows: which of several counts is not guessed", () => {
    const [dead, app] = [tokenOf("sin_dead"), "of-the-app"]
    for (const shown of [
      proof(bearer(app), `/?token=${dead}`),
      proof([], `/?token=${app}&token=${dead}`),
      proof([...bearer(app), ...bearer(dead)]),
      proof(["Authorization", "Basic YTpi", ...bearer(dead)]),
      proof(bearer(app), `/?token=tkt_${secret}.sin_dead`),
      proof([], `/?token=${app}&token=tkt_${secret}.sin_dead`),
    ])
      expect(shown.vias).toEqual(["sin_dead"])
    expect(proof(bearer(tokenOf("sin_1")), `/?token=${dead}&token=${tokenOf("sin_1")}`).vias).toEqual([
      ...["sin_1", "sin_dead"],
    ])
  })

  test("nothing, where nothing is shown that this control plane has signed and that is not over", () => {
    const nothing = { claims: undefined, vias: [] }
    const { privateKey: other } = generateKeyPairSync("ed25519")
    const [head = "", , tail = ""] = tokenOf("sin_1").split(".")
    for (const token of [
      ...[tokenOf("sin_1", "alice", other), tokenOf("sin_1", "alice", privateKey, -60), `${tokenOf("sin_1")}x`],
      ...[`${head}..${tail}`, `${head}.e30.${tail}`, `${head}.bnVsbA.${tail}`, `${head}.{.${tail}`, `${head}.`],
      ...["", "of-the-app", "lnk_x", `tkt_${secret}`, `tkt_${secret}.`, `tkt_short.sin_1`, `xtkt_${secret}.sin_1`],
    ]) {
      expect(proof(bearer(token))).toEqual(nothing)
      expect(proof([], `/?token=${token}`)).toEqual(nothing)
    }
    for (const raw of [[], ["Authorization"], ["X-Authorization", `Bearer ${tokenOf("sin_1")}`]])
      expect(proof(raw, `/token=${tokenOf("sin_1")}`)).toEqual(nothing)
  })
})

describe("cookies of the gateway's", () => {
  const ours = (via: string): string => `gateway_session=${secret}.${via}`
  const live = (raw: readonly string[]) => withLiveCookies(raw, async (via) => via === "sin_live")

  test("go on if what they go back to counts, and not otherwise", async () => {
    const raw = ["Cookie", `a=1; ${ours("sin_dead")};${ours("sin_live")}; b=x=y`, "X-Mine", "1"]
    expect(await live(raw)).toEqual({
      raw: ["Cookie", `a=1; ${ours("sin_live")}; b=x=y`, "X-Mine", "1"],
      vias: ["sin_live"],
    })
    expect(await live(["cookie", ours("sin_dead"), "cookie", "a=1"])).toEqual({ raw: ["cookie", "a=1"], vias: [] })
    expect(await live(["Cookie", `Gateway_Session=${secret}.sin_dead`])).toEqual({ raw: [], vias: [] })
  })

  test("and everything else goes on as it came", async () => {
    const others = ["Set-Cookie", ours("sin_dead"), "X-Cookie", ours("sin_dead")]
    const raw = [...others, "Cookie", `gateway_session=${secret}; x=${secret}.sin_dead; gateway_session=short.sin_dead`]
    expect(await live(raw)).toEqual({ raw, vias: [] })
  })
})
