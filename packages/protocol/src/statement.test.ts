import { generateKeyPairSync, sign } from "node:crypto"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { sessionOf, statementLimits, StatementSigner, StatementVerifier, type StatementFacts } from "./statement.ts"

const ours = generateKeyPairSync("ed25519")
const theirs = generateKeyPairSync("ed25519")
const facts: StatementFacts = { user: "alice", call: "session.get", session: "ses_1", scope: "sessions:read" }
const asked = { call: "session.get", in: { id: "ses_1" }, scope: "sessions:read" }

/** Somebody's clock, a signer and a runner's verifier. */
function system(key = ours.privateKey) {
  const time = { now: 1_700_000_000_000 }
  let signatures = 0
  const now = (): number => time.now
  const keys = (): (typeof ours.publicKey)[] => {
    signatures++
    return [ours.publicKey]
  }
  const verifier = new StatementVerifier({ user: "alice", now, keys })
  return { time, signer: new StatementSigner(key, now), verifier, looked: () => signatures }
}

const refusal = (verifier: StatementVerifier, given: object): string => {
  try {
    verifier.check({ ...asked, statement: undefined, ...given })
    return "accepted"
  } catch (thrown) {
    expect(thrown).toMatchObject({ code: "forbidden" })
    return (thrown as Error).message
  }
}

/** A statement with anything in it, properly signed. */
function signed(payload: object, key = ours.privateKey): string {
  const text = Buffer.from(JSON.stringify(payload)).toString("base64url")
  return `${text}.${sign(null, Buffer.from(`warren-statement-1\n${text}`), key).toString("base64url")}`
}

describe("a statement", () => {
  test("is good for exactly what it says, and may be shown again while it lives", () => {
    const { signer, verifier, looked } = system()
    const statement = signer.sign(facts)
    expect(verifier.check({ ...asked, statement })).toMatchObject({ ...facts, id: expect.stringMatching(/^stm_/) })
    verifier.check({ ...asked, statement })
    expect(looked()).toBe(1)
    expect(signer.sign(facts)).toBe(statement)
  })

  test("is made anew before it is over, and never lives longer than it may", () => {
    const { signer, verifier, time } = system()
    const first = signer.sign(facts)
    time.now += statementLimits.lifeMs / 2
    const second = signer.sign(facts)
    expect(second).not.toBe(first)
    expect(verifier.check({ ...asked, statement: second }).expiresAt - time.now).toBe(statementLimits.lifeMs)
  })

  test("a clock that was set back makes a new one, too", () => {
    const { signer, time } = system()
    const first = signer.sign(facts)
    time.now -= 3600_000
    expect(signer.sign(facts)).not.toBe(first)
  })

  test("expires, with a little room for clocks that differ, also when it was seen before", () => {
    const { signer, verifier, time } = system()
    const statement = signer.sign(facts)
    verifier.check({ ...asked, statement })
    time.now += statementLimits.lifeMs + statementLimits.skewMs
    verifier.check({ ...asked, statement })
    time.now += 1
    expect(refusal(verifier, { statement })).toBe("the statement has expired")
  })

  test.each([
    ["missing", undefined, "a signed statement is missing"],
    ["another user's", { user: "bob" }, "the statement is for another user"],
    ["for another call", { call: "session.delete" }, "the statement is for another call"],
    ["for another session", { session: "ses_2" }, "the statement is for another session"],
    ["for no session", { session: undefined }, "the statement is for another session"],
    ["for another scope", { scope: "exec" }, "the statement is for another scope"],
  ])("%s is refused", (_, changed, reason) => {
    const { signer, verifier } = system()
    const statement = changed && signer.sign(JSON.parse(JSON.stringify({ ...facts, ...changed })) as StatementFacts)
    expect(refusal(verifier, { statement })).toBe(reason)
  })

  test("one that would be good for too long is refused", () => {
    const { verifier, time } = system()
    const statement = signed({ ...facts, id: "stm_1", expiresAt: time.now + 3600_000 })
    expect(refusal(verifier, { statement })).toBe("the statement is good for too long")
  })

  test("signed with another key, or for another purpose, it is nothing", () => {
    const { verifier, time } = system()
    const statement = system(theirs.privateKey).signer.sign(facts)
    expect(refusal(verifier, { statement })).toBe("the statement is not signed by the control plane")
    const payload = Buffer.from(JSON.stringify({ ...facts, id: "x", expiresAt: time.now })).toString("base64url")
    const elsewhere = `${payload}.${sign(null, Buffer.from(payload), ours.privateKey).toString("base64url")}`
    expect(refusal(verifier, { statement: elsewhere })).toBe("the statement is not signed by the control plane")
  })

  test("when the control plane has a new key, the old one is worth nothing", () => {
    let key = ours.publicKey
    const now = (): number => 1_700_000_000_000
    const verifier: StatementVerifier = new StatementVerifier({ user: "alice", now, keys: () => [key] })
    const statement = new StatementSigner(ours.privateKey, now).sign(facts)
    verifier.check({ ...asked, statement })
    key = theirs.publicKey
    verifier.forget()
    expect(refusal(verifier, { statement })).toBe("the statement is not signed by the control plane")
    verifier.check({ ...asked, statement: new StatementSigner(theirs.privateKey, now).sign(facts) })
  })

  test("with any byte changed, cut short or made longer, it is refused", () => {
    const { signer, verifier } = system()
    const statement = signer.sign(facts)
    const bad = fc.oneof(
      fc.tuple(fc.nat(statement.length - 1), fc.string({ minLength: 1, maxLength: 1 })).map(([at, character]) => {
        return statement.slice(0, at) + character + statement.slice(at + 1)
      }),
      fc.nat(statement.length - 1).map((length) => statement.slice(0, length)),
      fc.string().map((more) => `${statement}.${more}`),
      fc.string(),
    )
    fc.assert(
      fc.property(bad, (text) => {
        // Base64 has more than one way to write the last bits; what is read is the same, so nothing was changed.
        fc.pre(!isSameBytes(text, statement))
        expect(refusal(verifier, { statement: text })).toMatch(/not signed|not one/)
      }),
      { numRuns: 500 },
    )
  })

  test("signed nonsense is refused", () => {
    const { verifier, time } = system()
    for (const payload of [
      {},
      [],
      { ...facts },
      { ...facts, id: 5, expiresAt: time.now },
      { ...facts, id: "", expiresAt: "9" },
    ]) {
      expect(refusal(verifier, { statement: signed(payload) })).toBe("the statement is not one")
    }
  })
})

function isSameBytes(a: string, b: string): boolean {
  const read = (text: string): string =>
    text
      .split(".")
      .map((part) => Buffer.from(part, "base64url").toString("hex"))
      .join(".")
  const [payload] = a.split(".")
  return read(a) === read(b) && payload === b.split(".")[0]
}

test.each([
  ["session.get", { id: "a" }, "a"],
  ["file.read", { session: "a", path: "/x" }, "a"],
  ["memory.get", { id: "a" }, undefined],
  ["session.get", { id: 5 }, undefined],
  ["session.list", {}, undefined],
  ["snapshot.delete", { id: "snp" }, undefined],
  ["session.get", null, undefined],
])("the session of %s %j is %s", (call, input, session) => {
  expect(sessionOf(call, input)).toBe(session)
})
