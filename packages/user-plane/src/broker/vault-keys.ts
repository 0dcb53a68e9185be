import { Fault } from "@warren/base/fault.ts"
import type { Vault } from "../vault/vault.ts"
import type { Key } from "./credentials.ts"
import type { LeaseScope } from "./lease.ts"

/** Which secret holds the key for a scope at a destination, by its name: the first that is there. */
export function vaultKeys(vault: Vault): (scope: LeaseScope, destination: string) => Promise<Key> {
  return async (scope, destination) => {
    const names = secretNames(scope, destination)
    for (const name of names) {
      const value = ifThere(() => vault.reveal(name, `broker ${scope} ${destination}`))
      if (value !== undefined) return { value }
    }
    throw new Fault("not_found", `there is no key for ${scope} at ${destination}`, {
      hint: `set the secret ${names.join(" or ")}`,
    })
  }
}

function ifThere<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (failure) {
    if (Fault.from(failure).code === "not_found") return undefined
    throw failure
  }
}

function secretNames(scope: LeaseScope, destination: string): string[] {
  if (scope === "llm:anthropic") return ["ANTHROPIC_API_KEY"]
  if (scope === "llm:openai") return ["OPENAI_API_KEY"]
  const [host = ""] = destination.split("/")
  return [`GIT_TOKEN_${host.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`, "GIT_TOKEN"]
}
