import type { Call, Feed, Stream } from "@warren/protocol/contract.ts"
import type { publicCalls } from "@warren/protocol/control-plane.ts"
import type { z } from "zod"

/** The contract by its HTTP routes. Only types: nothing of the contract is in what ships. */
type Plane = typeof publicCalls
export type Routes = {
  [K in keyof Plane as Plane[K] extends { http: infer Http extends string } ? Http : never]: Plane[K]
}

export type Route = keyof Routes
export type CallRoute = { [R in Route]: Routes[R] extends Call ? R : never }[Route]
export type FeedRoute = { [R in Route]: Routes[R] extends Feed ? R : never }[Route]
export type StreamRoute = { [R in Route]: Routes[R] extends Stream ? R : never }[Route]
export type MakingRoute = { [R in CallRoute]: Routes[R] extends { makes: true } ? R : never }[CallRoute]
export type PagedRoute = {
  [R in CallRoute]: "nextCursor" extends keyof Output<R> ? R : never
}[CallRoute]

/** What a caller writes. */
export type Input<R extends Route> = z.input<Routes[R]["in"]>
export type Output<R extends Route> = Routes[R] extends Call ? z.output<Routes[R]["out"]> : never
export type Item<R extends Route> = Routes[R] extends Feed ? z.output<Routes[R]["each"]> : never
export type Message<R extends Route> = Routes[R] extends Stream ? z.output<Routes[R]["down"]> : never

/** The rest of an input when some of its fields are known. */
export type Rest<R extends Route, Known extends string> = Omit<Input<R>, Known>

export interface Asked {
  readonly method: string
  readonly path: string
  /** What did not go into the path. */
  readonly rest: Readonly<Record<string, unknown>>
}

/** A route with an input's fields in the places the route has for them. */
export function placed(route: string, input: object): Asked {
  const rest: Record<string, unknown> = { ...input }
  const [method = "", pattern = ""] = route.split(" ")
  const path = pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest[name]
    delete rest[name]
    return encodeURIComponent(String(value))
  })
  return { method, path, rest }
}

/** Fields as a query; what is not given is left out. */
export function query(fields: Readonly<Record<string, unknown>>): string {
  const pairs = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined) pairs.append(name, String(one))
    }
  }
  return pairs.size === 0 ? "" : `?${pairs.toString()}`
}
