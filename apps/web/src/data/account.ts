import type { Fault } from "@warren/base/fault.ts"
import type { Output } from "@warren/sdk/routes.ts"
import { useQuery } from "@tanstack/react-query"
import { http } from "./api.ts"
import { queries } from "./query.ts"

export type Account = Output<"GET /v1/account">

/** An open question: a stranger is told so, not refused. */
const key = ["GET /v1/login", {}] as const

/** Who is signed in: undefined until it is known, null when nobody is. */
export function useAccount(): Account | null | undefined {
  const { data } = useQuery<Output<"GET /v1/login">, Fault>({
    queryKey: key,
    queryFn: ({ signal }) => http.call("GET /v1/login", {}, { signal }),
    retry: true,
    staleTime: 60_000,
  })
  return data && (data.account ?? null)
}

/** Somebody has signed in, or out: everything that was read belonged to another. */
export async function renewAccount(): Promise<void> {
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== key[0] })
  await queries.invalidateQueries({ queryKey: key })
}
