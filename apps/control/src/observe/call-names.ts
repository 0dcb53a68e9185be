import type { Contract } from "@warren/protocol/contract.ts"
import { httpOf } from "@warren/protocol/http/path.ts"

/** Which call a request would have been: for what is refused before it becomes one. */
export function callNames(contract: Contract): (method: string, path: string) => string | undefined {
  const known = Object.entries(contract).flatMap(([name, { http }]) => {
    if (!http) return []
    const { method, path } = httpOf(http)
    const pattern = new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`)
    return [{ name, method, pattern }]
  })
  return (method, path) => known.find((one) => one.method === method && one.pattern.test(path))?.name
}
