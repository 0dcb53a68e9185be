import { createHmac, generateKeyPairSync, sign, type KeyObject } from "node:crypto"
import { describe, expect, test } from "vitest"
import { gatewayOf, signGatewayToken, verifyGatewayToken } from "./gateway-token.ts"

const ours = generateKeyPairSync("ed25519")
const theirs = generateKeyPairSync("ed25519")
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 })
const now = 1_700_000_000_000
const at = now / 1000
const text = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url")
const header = { alg: "EdDSA", typ: "warren-gateway+jwt" }
const claims = { sub: "alice", sid: "ses_1", aud: gatewayOf("alice"), iat: at, exp: at + 60 }
const eddsa = (signed: string, key: KeyObject = ours.privateKey): string =>
  sign(null, Buffer.from(signed), key).toString("base64url")
const made = (head: object, body: object, key?: KeyObject): string => {
  const signed = `${text(head)}.${text(body)}`
  return `${signed}.${eddsa(signed, key)}`
}
const expected = { keys: [ours.publicKey], user: "alice", session: "ses_1", now }

describe("a gateway token", () => {
  test("opens its session, at its user's gateway, for as long as it says", () => {
    const token = signGatewayToken(ours.privateKey, { user: "alice", session: "ses_1", lifeS: 60, now })
    expect(verifyGatewayToken(token, expected)).toMatchObject(claims)
    expect(verifyGatewayToken(token, { ...expected, session: undefined }).sid).toBe("ses_1")
    expect(() => verifyGatewayToken(token, { ...expected, now: now + 66_000 })).toThrow("not valid")
  })

  test("never lives longer than a quarter of an hour", () => {
    const token = signGatewayToken(ours.privateKey, { user: "alice", session: "ses_1", lifeS: 9_999, now })
    const { exp, iat } = verifyGatewayToken(token, expected)
    expect(exp - iat).toBe(900)
  })

  const publicPem = ours.publicKey.export({ type: "spki", format: "pem" })
  const hmac = (signed: string): string => createHmac("sha256", publicPem).update(signed).digest("base64url")
  const bodies = text(claims)
  test.each<[string, string]>([
    ["alg none", `${text({ ...header, alg: "none" })}.${bodies}.`],
    ["alg None", `${text({ ...header, alg: "None" })}.${bodies}.`],
    ["alg nOnE with a signature", made({ ...header, alg: "nOnE" }, claims)],
    ["an empty signature", `${text(header)}.${bodies}.`],
    ["no signature", `${text(header)}.${bodies}`],
    [
      "HS256 with the public key",
      `${text({ ...header, alg: "HS256" })}.${bodies}.${hmac(`${text({ ...header, alg: "HS256" })}.${bodies}`)}`,
    ],
    ["HS256 behind our header", `${text(header)}.${bodies}.${hmac(`${text(header)}.${bodies}`)}`],
    [
      "RS256",
      `${text({ ...header, alg: "RS256" })}.${bodies}.${sign("sha256", Buffer.from(`${text({ ...header, alg: "RS256" })}.${bodies}`), rsa.privateKey).toString("base64url")}`,
    ],
    ["another key", made(header, claims, theirs.privateKey)],
    [
      "a key of its own",
      made({ ...header, jwk: theirs.publicKey.export({ format: "jwk" }) }, claims, theirs.privateKey),
    ],
    ["a key to fetch", made({ ...header, jku: "https://evil.example/keys" }, claims)],
    ["a key id that is a path", made({ ...header, kid: "../../dev/null" }, claims)],
    ["a critical extension", made({ ...header, crit: ["x"], x: 1 }, claims)],
    ["another type", made({ ...header, typ: "JWT" }, claims)],
    ["no type", made({ alg: "EdDSA" }, claims)],
    ["expired", made(header, { ...claims, iat: at - 120, exp: at - 60 })],
    ["no expiry", made(header, { ...claims, exp: undefined })],
    ["expiry as text", made(header, { ...claims, exp: String(at + 60) })],
    ["good for too long", made(header, { ...claims, exp: at + 901 })],
    ["not yet good", made(header, { ...claims, iat: at + 30, exp: at + 60 })],
    ["another audience", made(header, { ...claims, aud: gatewayOf("bob") })],
    ["many audiences", made(header, { ...claims, aud: [gatewayOf("alice")] })],
    ["another user", made(header, { ...claims, sub: "bob" })],
    ["another session", made(header, { ...claims, sid: "ses_2" })],
    ["no session", made(header, { ...claims, sid: undefined })],
    ["four parts", `${made(header, claims)}.x`],
    ["padding", `${made(header, claims)}=`],
    ["white space", ` ${made(header, claims)}`],
    ["nothing", ""],
    ["a megabyte", "a.".repeat(500_000)],
    ["longer than one of ours can be", made(header, { ...claims, more: "x".repeat(2_048) })],
    [
      "not JSON",
      (() => {
        const signed = `${text(header)}.AAAA`
        return `${signed}.${eddsa(signed)}`
      })(),
    ],
  ])("is refused: %s", (_, token) => {
    expect(() => verifyGatewayToken(token, expected)).toThrow(expect.objectContaining({ code: "unauthenticated" }))
  })

  test("with any one character changed it is refused", () => {
    const token = signGatewayToken(ours.privateKey, { user: "alice", session: "ses_1", lifeS: 60, now })
    for (let index = 0; index < token.length; index++) {
      const changed = token.slice(0, index) + (token[index] === "A" ? "B" : "A") + token.slice(index + 1)
      expect(() => verifyGatewayToken(changed, expected)).toThrow("not valid")
    }
  })
})
