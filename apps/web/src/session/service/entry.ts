import { http } from "../../data/api.ts"

export interface Entry {
  /** Good once. */
  readonly token: string
  readonly session: string
  /** Below which what is inside has names of its own. */
  readonly domain: string
}

/** What opens a session's services at the gateway, for minutes. */
export function entryTo(session: string, signal?: AbortSignal): Promise<Entry> {
  return http.call("POST /v1/sessions/{id}/gateway-token", { id: session }, { signal })
}

/** Only then are they of one site with this page, and the browser lets them keep their cookies in it. */
export function canFrame({ domain }: Entry): boolean {
  return domain !== "" && (location.hostname === domain || location.hostname.endsWith(`.${domain}`))
}

/** This page, where what is inside can be shown in it. */
export function pageBelow({ domain }: Entry): string {
  return `${location.protocol}//${domain}${location.port ? `:${location.port}` : ""}${location.pathname}`
}
