import { http } from "../../data/api.ts"

export interface Entry {
  /** Good once. */
  readonly token: string
  readonly session: string
  /** Below which what is inside has names of its own. */
  readonly domain: string
}

/** What opens a session at the gateway, or only one of its ports, for minutes. */
export function entryTo(session: string, signal?: AbortSignal, port?: number): Promise<Entry> {
  const input = { id: session, ...(port === undefined ? {} : { port }) }
  return http.call("POST /v1/sessions/{id}/gateway-token", input, { signal })
}

/** Only then are they of one site with this page, and the browser lets them keep their cookies in it. */
export function canFrame({ domain }: Entry): boolean {
  return domain !== "" && (location.hostname === domain || location.hostname.endsWith(`.${domain}`))
}
