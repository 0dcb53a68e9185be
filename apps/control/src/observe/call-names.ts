import type { Contract, Entry } from "@warren/protocol/contract.ts"
import { httpOf } from "@warren/protocol/http/path.ts"

/** Which call a request would have been: for what is refused before it becomes one. */
export function callNames(contract: Contract): (method: string, path: string) => string | undefined {
  // Fixed paths first, as they are routed.
  const entries = Object.entries(contract).toSorted(([, a], [, b]) => parametersOf(a) - parametersOf(b))
  const known = entries.flatMap(([name, { http }]) => {
    if (!http) return []
    const { method, path } = httpOf(http)
    const pattern = new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`)
    return [{ name, method, pattern }]
  })
  return (method, path) => known.find((one) => one.method === method && one.pattern.test(path))?.name
}

function parametersOf({ http }: Entry): number {
  return http === undefined ? 0 : httpOf(http).parameters.length
}
