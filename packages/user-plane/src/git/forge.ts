import { Fault, messageOf, type FaultCode } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { z } from "zod"
import { maskText } from "../broker/mask.ts"
import type { Key } from "../broker/credentials.ts"
import type { LeaseScope } from "../broker/lease.ts"
import type { RepositoryAddress } from "./repository-address.ts"

export interface ForgeParts {
  /** By host; GitHub's own, and that of a GitHub Enterprise at the host, unless told. */
  readonly bases?: Readonly<Record<string, string>> | undefined
  readonly keys: (scope: LeaseScope, destination: string) => Promise<Key>
  readonly log: Log
}

export interface PullRequest {
  readonly url: string
  readonly number: number
  readonly isNew: boolean
}

export interface PullRequestWish {
  readonly title: string
  readonly body: string
  readonly head: string
  readonly base: string
  readonly isDraft: boolean
}

const Made = z.object({ number: z.int(), html_url: z.url({ protocol: /^https?$/ }) })
const Refused = z.object({
  message: z.string(),
  errors: z.array(z.looseObject({ message: z.string().optional() })).optional(),
})
const requestMs = 30_000
const answerBytesMax = 4 * 1024 * 1024

/** Where pull requests are asked for: GitHub's REST, with a key that no sandbox sees. */
export class Forge {
  readonly #parts: ForgeParts

  constructor(parts: ForgeParts) {
    this.#parts = parts
  }

  /** The one that is open for the branch when there is one already. */
  async request(at: RepositoryAddress, wish: PullRequestWish, signal: AbortSignal): Promise<PullRequest> {
    const { isDraft, ...asked } = wish
    const made = await this.#ask(at, "POST", "/pulls", { ...asked, draft: isDraft }, signal)
    if (made.status === 201) return { ...shown(Made, made.body), isNew: true }
    if (made.status === 422 && isThere(made.body)) {
      const open = await this.#open(at, wish, signal)
      if (open) return open
    }
    throw refusal(made)
  }

  async #open(
    at: RepositoryAddress,
    { head, base }: PullRequestWish,
    signal: AbortSignal,
  ): Promise<PullRequest | undefined> {
    const [owner = ""] = at.path.split("/")
    const query = new URLSearchParams({ state: "open", head: `${owner}:${head}`, base })
    const { status, body } = await this.#ask(at, "GET", `/pulls?${query.toString()}`, undefined, signal)
    if (status !== 200) return undefined
    const [found] = z.array(Made).parse(body)
    return found && { url: found.html_url, number: found.number, isNew: false }
  }

  async #ask(
    { host = "", path }: RepositoryAddress,
    method: "GET" | "POST",
    rest: string,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<{ status: number; body: unknown; secret: string }> {
    if (!/^[\w.-]+\/[\w.-]+$/.test(path))
      throw new Fault("unsupported", `${path} is not owner/name: no pull requests there`)
    const { keys, log } = this.#parts
    const { value: secret } = await keys("git:write", `${host}/${path}`)
    const headers = {
      accept: "application/vnd.github+json",
      authorization: `Bearer ${secret}`,
      "x-github-api-version": "2022-11-28",
      "user-agent": "warren",
      ...(body ? { "content-type": "application/json" } : {}),
    }
    const either = AbortSignal.any([signal, AbortSignal.timeout(requestMs)])
    const request = { method, headers, signal: either, redirect: "error" as const }
    try {
      const url = `${this.#baseOf(host)}/repos/${path}${rest}`
      const response = await fetch(url, body ? { ...request, body: JSON.stringify(body) } : request)
      const text = (await response.text()).slice(0, answerBytesMax)
      log("info", "forge.use", { host, path, method, status: response.status })
      return { status: response.status, body: parsed(maskText(text, [secret])), secret }
    } catch (failure) {
      signal.throwIfAborted()
      log("warn", "forge.use", { host, path, method, message: maskText(messageOf(failure), [secret]) })
      throw new Fault("unavailable", `${host} cannot be asked for pull requests`, { cause: failure })
    }
  }

  #baseOf(host: string): string {
    const told = this.#parts.bases?.[host]
    return (told ?? (host === "github.com" ? "https://api.github.com" : `https://${host}/api/v3`)).replace(/\/$/, "")
  }
}

function shown(schema: typeof Made, body: unknown): Omit<PullRequest, "isNew"> {
  const answer = schema.safeParse(body)
  if (!answer.success)
    throw new Fault("unavailable", "what answered is not GitHub's REST", { hint: "see WARREN_FORGE_URLS" })
  return { url: answer.data.html_url, number: answer.data.number }
}

function isThere(body: unknown): boolean {
  const { data } = Refused.safeParse(body)
  return [data?.message, ...(data?.errors ?? []).map(({ message }) => message)].some((text) =>
    text?.includes("already exists"),
  )
}

const codes: Readonly<Record<number, FaultCode>> = {
  401: "forbidden",
  403: "forbidden",
  404: "not_found",
  422: "conflict",
}

function refusal({ status, body }: { readonly status: number; readonly body: unknown }): Fault {
  const { data } = Refused.safeParse(body)
  const said = [data?.message, ...(data?.errors ?? []).map(({ message }) => message)].filter(Boolean).join("; ")
  return new Fault(
    codes[status] ?? "unavailable",
    `the forge answered ${status}${said ? `: ${said.slice(0, 500)}` : ""}`,
    {
      ...(status === 401 || status === 403 ? { hint: "may the key in the vault make pull requests?" } : {}),
    },
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
