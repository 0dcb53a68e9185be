import * as current from "e2b"
import * as older from "e2b-2.45"
import { ApiSystem } from "../api/system.ts"

/** The published packages, as they are. Both have what is used here; the older one has it in fewer words. */
export const sdks = [
  { version: "2.51", sdk: current },
  { version: "2.45", sdk: older as unknown as typeof current },
] as const
export type Sdk = typeof current

/** A Warren, and what somebody sets who comes from E2B: a key and where to find it. */
export class E2bSystem implements AsyncDisposable {
  readonly api: ApiSystem
  readonly options: { readonly apiKey: string; readonly apiUrl: string; readonly sandboxUrl: string }

  private constructor(api: ApiSystem, apiKey: string) {
    this.api = api
    this.options = { apiKey, apiUrl: `${api.url}/e2b`, sandboxUrl: api.url }
  }

  static async start(settings: NodeJS.ProcessEnv = {}): Promise<E2bSystem> {
    const api = await ApiSystem.start(settings)
    return new E2bSystem(api, await keyOf(api))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api[Symbol.asyncDispose]()
  }
}

/** A new key of the form their clients insist on. */
export async function keyOf(api: ApiSystem, wishes: object = {}): Promise<string> {
  const body = JSON.stringify({ form: "e2b", ...wishes })
  const answer = await api.fetch("/v1/tokens", {
    method: "POST",
    body,
    headers: { "content-type": "application/json" },
  })
  return ((await answer.json()) as { token: string }).token
}
