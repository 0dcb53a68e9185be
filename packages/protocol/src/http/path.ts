import type { Call, Feed } from "../contract.ts"

export interface HttpRoute {
  readonly method: string
  /** With `{name}` where a field of the input goes. */
  readonly path: string
  readonly parameters: readonly string[]
}

export function httpOf(http: NonNullable<(Call | Feed)["http"]>): HttpRoute {
  const [method = "", path = ""] = http.split(" ")
  return { method, path, parameters: [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "") }
}
