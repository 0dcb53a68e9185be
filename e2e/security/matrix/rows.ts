import { readFileSync } from "node:fs"
import { join } from "node:path"

/**
 * What a route needs and what it is about, written down by hand: the router may change, this says whether it may. `any`: a token,
 * whatever it may do. `address`: what opens it is in its address. `rest`: no route, but what looks at every request.
 */
export interface Row {
  readonly route: string
  readonly method: string
  readonly path: string
  readonly scope: string
  readonly about: "session" | "thing" | "own" | "machine" | "login" | "page" | "address" | "rest"
  readonly isSocket: boolean
  /** Refused to a token that sees only sessions of other names. */
  readonly isShutToLimited: boolean
  /** Its clients are told that what is not theirs is gone already. */
  readonly isQuiet: boolean
}

export function rows(): Row[] {
  const [, ...lines] = readFileSync(join(import.meta.dirname, "rows.csv"), "utf8")
    .trim()
    .split("\n")
  return lines.map((line) => {
    const [route = "", scope = "", about = "", limited, other] = line.split(",")
    const [method = "", path = ""] = route.split(" ")
    const kind = scope === "address" ? "address" : about === "socket" ? "session" : about
    return {
      ...{ route, method, path, scope, about: kind as Row["about"], isSocket: about === "socket" },
      ...{ isShutToLimited: limited === "shut" || about === "socket", isQuiet: other === "quiet" },
    }
  })
}
