import { Fault } from "@warren/base/fault.ts"

/** How a browser keeps its sign-in. */
export class Cookies {
  /** A browser takes `__Host-` only from this very host over TLS, so no neighbour can plant one. */
  readonly #prefix: string
  readonly #attributes: string

  constructor(publicUrl: URL) {
    const isSecure = publicUrl.protocol === "https:"
    this.#prefix = isSecure ? "__Host-warren" : "warren"
    this.#attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`
  }

  read(request: Request, name: "sign-in" | "oidc"): string | undefined {
    const wanted = `${this.#prefix}-${name}`
    const values = (request.headers.get("cookie") ?? "").split(";").flatMap((pair) => {
      const [key = "", ...value] = pair.trim().split("=")
      return key === wanted ? [value.join("=")] : []
    })
    // Two of one name: one of them was planted by somebody, and there is no telling which.
    if (values.length > 1) throw new Fault("invalid", "the cookie was sent twice")
    return values[0]
  }

  set(name: "sign-in" | "oidc", value: string, lifeMs: number): [string, string] {
    const age = Math.floor(lifeMs / 1000)
    return ["set-cookie", `${this.#prefix}-${name}=${value}; Max-Age=${age}; ${this.#attributes}`]
  }

  clear(name: "sign-in" | "oidc"): [string, string] {
    return this.set(name, "", 0)
  }
}
