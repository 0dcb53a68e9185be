import { useMemo } from "react"
import { useCall } from "../../data/query.ts"

const usersMax = 200

/** Names by id, for what knows users only so. */
export function useUserNames(): ReadonlyMap<string, string> {
  const { data } = useCall("GET /v1/users", { limit: usersMax })
  return useMemo(() => new Map(data?.items.map(({ id, name }) => [id, name])), [data])
}
