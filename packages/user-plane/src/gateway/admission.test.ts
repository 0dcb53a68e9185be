import { generateKeyPairSync } from "node:crypto"
import { ManualClock } from "@warren/base/clock.ts"
import { newId } from "@warren/base/id.ts"
import { signGatewayToken, verifyGatewayToken } from "@warren/protocol/gateway-token.ts"
import type { Tunnel } from "@warren/protocol/user-plane/tunnels.ts"
import { describe, expect, test } from "vitest"
import { labelOf, prefixOf, type Address } from "./address.ts"
import { Admissions } from "./admission.ts"
import { credentialsOf, type Credentials } from "./credentials.ts"

const { privateKey, publicKey } = generateKeyPairSync("ed25519")
const [session, other] = [newId("ses"), newId("ses")]
const user = "alice"
const link = "lnk_whoever-has-it"

const tunnelTo = (name: string, more: Partial<Tunnel> = {}): Tunnel => ({
  ...{ id: newId("tun"), session, name, port: 8080, protocol: "auto", visibility: "private", createdAt: "" },
  ...{ path: `${prefixOf(session, name)}/`, label: labelOf(session, name), ...more },
})
const at = (target: string, whose = session): Address => ({
  ...{ mode: "host", session: whose, target, prefix: "", path: "/", query: "" },
  authority: { host: `${labelOf(whose, target)}.warren.localhost`, port: "", scheme: "http" },
})

/** A door with these tunnels; the link is that of those that are links. */
class Door {
  readonly clock = new ManualClock()
  readonly tunnels = new Map<string, Tunnel>()
  readonly admissions = new Admissions({
    clock: this.clock,
    tunnels: {
      find: (whose, name) => (whose === session ? this.tunnels.get(name) : undefined),
      isLink: ({ visibility }, token) => visibility === "link" && token === link,
    },
    verify: (token) => verifyGatewayToken(token, { keys: [publicKey], user, now: this.clock.now() }),
  })

  add(name: string, more: Partial<Tunnel> = {}): Tunnel {
    const tunnel = tunnelTo(name, more)
    this.tunnels.set(name, tunnel)
    return tunnel
  }

  token(more: { port?: number; tools?: boolean; via?: string } = {}, whose = session): string {
    return signGatewayToken(privateKey, { user, session: whose, lifeS: 600, now: this.clock.now(), ...more })
  }

  /** How somebody is let in, or the status they are refused with. */
  asks(address: Address, shown: Partial<Credentials>): unknown {
    try {
      return this.admissions.admit(address, { ...credentialsOf([], ""), ...shown }).how
    } catch (refusal) {
      return (refusal as { status?: number }).status ?? `${(refusal as { code?: string }).code}`
    }
  }
}

describe("who is let in", () => {
  test("nobody who shows nothing, whatever is there or not", () => {
    const door = new Door()
    door.add("mine")
    door.add("shared", { visibility: "link" })
    door.add("open", { visibility: "public" })
    const shown = ["3000", "mine", "shared", "nothing", "vscode", "open"].map((target) => door.asks(at(target), {}))
    expect(shown).toEqual([401, 401, 401, 401, 401, "public"])
    expect(door.asks(at("open", other), {})).toBe(401)
    expect(door.asks(at("3000"), { cookies: ["", "made-up"] })).toBe(401)
  })

  test("who has a token for the session: to its ports and tunnels, and to what is there alone", () => {
    const door = new Door()
    const tunnel = door.add("mine")
    const shown = credentialsOf(["Authorization", `Bearer ${door.token({ via: "sin_1" })}`], "")
    const grant = { user, session, via: "sin_1" }
    expect(door.admissions.admit(at("3000"), shown)).toMatchObject({ grant: { ...grant, target: "3000" }, port: 3000 })
    expect(door.admissions.admit(at("mine"), shown)).toMatchObject({ tunnel, port: 8080, builtIn: undefined })
    expect(door.asks(at("nothing"), shown)).toBe(404)
    expect(door.asks(at("3000", other), shown)).toBe(401)
  })

  test("a token for one port is for no other, also by a name that leads to another port later", () => {
    const door = new Door()
    door.add("mine")
    const shown = { bearer: door.token({ port: 8080 }) }
    expect(["8080", "mine", "3000"].map((target) => door.asks(at(target), shown))).toEqual(["bearer", "bearer", 403])
    const inUrl = door.token({ port: 8080 })
    const { grant } = door.admissions.admit(at("mine"), credentialsOf([], `?token=${inUrl}`))
    const cookies = [door.admissions.cookieFor(grant)]
    expect(door.asks(at("mine"), { cookies })).toBe("cookie")
    door.add("mine", { port: 9090 })
    expect(door.asks(at("mine"), { cookies })).toBe(403)
  })

  test("what Warren keeps in a session is for who may run programs, unless a tunnel stands in its place", () => {
    const door = new Door()
    const [tools, plain] = [{ bearer: door.token({ tools: true }) }, { bearer: door.token() }]
    for (const target of ["vscode", "vnc", "ttyd"]) {
      const { builtIn, port } = door.admissions.admit(at(target), { ...credentialsOf([], ""), ...tools })
      expect([builtIn, port]).toEqual([target, undefined])
      expect(door.asks(at(target), plain)).toBe(403)
    }
    door.add("vscode")
    expect(door.asks(at("vscode"), plain)).toBe("bearer")
    expect(door.asks(at("ttyd"), { bearer: door.token({ tools: true, port: 3000 }) })).toBe(403)
  })
})

describe("a token in a URL", () => {
  test("is used up by being shown once, also for the header and for the API", () => {
    const door = new Door()
    const inUrl = door.token()
    expect([door.asks(at("3000"), { inUrl }), door.asks(at("3000"), { inUrl })]).toEqual(["url", 401])
    expect(door.asks(at("3000"), { bearer: inUrl })).toBe(401)
    expect(() => door.admissions.owner(credentialsOf(["Authorization", `Bearer ${inUrl}`], ""))).toThrow("not valid")
  })

  test("stays used up until it would have ended, whatever two clocks say", async () => {
    const door = new Door()
    const inUrl = door.token()
    expect(door.asks(at("3000"), { inUrl })).toBe("url")
    await door.clock.advance(602_000)
    expect(door.asks(at("3000"), { inUrl })).toBe(401)
  })

  test("is not needed by who has been let in with it: the page may be loaded again", () => {
    const door = new Door()
    const inUrl = door.token()
    const { grant } = door.admissions.admit(at("3000"), credentialsOf([], `?token=${inUrl}`))
    const cookies = [door.admissions.cookieFor(grant)]
    expect(door.asks(at("3000"), { inUrl, cookies })).toBe("cookie")
    expect(door.asks(at("3001"), { inUrl, cookies })).toBe(401)
  })
})

describe("a ticket", () => {
  const grant = { user, session, target: "3000", via: "sin_1" }
  const { host } = at("3000").authority

  test("lets in once, in a URL, at the host it was made for", () => {
    const door = new Door()
    const inUrl = door.admissions.ticketFor(grant, host)
    expect([door.asks(at("3000"), { inUrl }), door.asks(at("3000"), { inUrl })]).toEqual(["url", 401])
    expect(door.asks(at("3001"), { inUrl: door.admissions.ticketFor(grant, host) })).toBe(401)
    expect(door.asks(at("3000"), { inUrl: "tkt_nobody-made-this" })).toBe(401)
  })

  test("is for one preview of one session, even were another at the same host", () => {
    const door = new Door()
    for (const elsewhere of [at("3001"), at("3000", other)]) {
      const inUrl = door.admissions.ticketFor(grant, host)
      expect(door.asks({ ...elsewhere, authority: at("3000").authority }, { inUrl })).toBe(401)
    }
  })

  test("is nothing in a header", () => {
    const door = new Door()
    const bearer = door.admissions.ticketFor(grant, host)
    expect(door.asks(at("3000"), { bearer })).toBe("unauthenticated")
    expect(() => door.admissions.owner({ ...credentialsOf([], ""), bearer })).toThrow("not valid")
  })
})

describe("a link", () => {
  test("is for its tunnel, as often as it is opened", () => {
    const door = new Door()
    door.add("shared", { visibility: "link" })
    door.add("mine")
    for (const shown of [{ inUrl: link }, { inUrl: link }, { bearer: link }, { bearer: link }])
      expect(door.asks(at("shared"), shown)).toBe("inUrl" in shown ? "url" : "bearer")
    for (const target of ["mine", "8080", "nothing", "ttyd"]) {
      expect(door.asks(at(target), { bearer: link })).toBe(401)
      expect(door.asks(at(target), { inUrl: link })).toBe(401)
    }
    expect(door.asks(at("shared"), { bearer: "lnk_another" })).toBe(401)
    expect(() => door.admissions.owner({ ...credentialsOf([], ""), bearer: link })).toThrow("not valid")
  })

  test("opens nothing any more with the tunnel it was of, also by a cookie, also for the next of its name", () => {
    const door = new Door()
    const tunnel = door.add("shared", { visibility: "link" })
    const { grant } = door.admissions.admit(at("shared"), credentialsOf([], `?token=${link}`))
    expect(grant).toEqual({ user: "", session, target: "shared", tunnel: tunnel.id })
    const cookies = [door.admissions.cookieFor(grant)]
    expect(door.asks(at("shared"), { cookies })).toBe("cookie")
    door.add("shared", { visibility: "link" })
    expect(door.asks(at("shared"), { cookies })).toBe(401)
    door.tunnels.delete("shared")
    expect(door.asks(at("shared"), { cookies })).toBe(401)
  })
})

test("the gateway's own API is for who has a token for the whole session, in a header", () => {
  const door = new Door()
  const owner = (shown: Partial<Credentials>) => door.admissions.owner({ ...credentialsOf([], ""), ...shown })
  expect(owner({ bearer: door.token() })).toMatchObject({ sid: session, sub: user })
  expect(() => owner({ bearer: door.token({ port: 3000 }) })).toThrow("one port only")
  const cookies = [door.admissions.cookieFor({ user, session, target: "3000" })]
  for (const shown of [{}, { cookies }, { inUrl: door.token() }]) expect(() => owner(shown)).toThrow("not valid")
})
