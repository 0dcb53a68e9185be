import { once } from "node:events"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { Provider } from "oidc-provider"

/** A real identity provider of a test's own. Whoever signs in there is whom they say. */
export class OidcServer implements AsyncDisposable {
  readonly issuer: string
  readonly #server: Server

  private constructor(issuer: string, server: Server) {
    this.issuer = issuer
    this.#server = server
  }

  static async start(redirect: string): Promise<OidcServer> {
    const server = createServer().listen(0, "127.0.0.1")
    await once(server, "listening")
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const provider = new Provider(issuer, {
      clients: [{ client_id: "warren", client_secret: "a secret", redirect_uris: [redirect] }],
      claims: { openid: ["sub"], profile: ["preferred_username"] },
      conformIdTokenClaims: false,
      features: { devInteractions: { enabled: true } },
      cookies: { keys: ["k"] },
      findAccount: (_: unknown, id: string) => ({
        accountId: id,
        claims: () => Promise.resolve({ sub: id, preferred_username: id.replace(/@.*/, "") }),
      }),
    })
    server.on("request", provider.callback())
    return new OidcServer(issuer, server)
  }

  /** Signs in there as a browser does, and says where it is sent back to. */
  async signIn(from: string, login: string, redirect: string): Promise<URL> {
    const jar = new Map<string, string>()
    let url = new URL(from)
    let form: string | undefined
    for (let hop = 0; hop < 12; hop++) {
      if (url.href.startsWith(redirect)) return url
      const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ")
      const response = await fetch(url, {
        redirect: "manual",
        headers: { cookie, ...(form === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }) },
        ...(form === undefined ? {} : { method: "POST", body: form }),
      })
      for (const set of response.headers.getSetCookie()) {
        const [pair = ""] = set.split(";")
        jar.set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1))
      }
      const page = await response.text()
      const location = response.headers.get("location")
      const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1]
      form =
        location === null ? new URLSearchParams({ prompt: prompt ?? "", login, password: "x" }).toString() : undefined
      const action = /action="([^"]+)"/.exec(page)?.[1]
      url = new URL(location ?? action ?? "", url)
    }
    throw new Error(`the provider led nowhere: ${url.href}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, "close")
  }
}
