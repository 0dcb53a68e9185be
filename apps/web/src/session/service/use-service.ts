import type { Fault } from "@warren/base/fault.ts"
import type { Output } from "@warren/sdk/routes.ts"
import { useQuery, type UseQueryResult } from "@tanstack/react-query"
import { http } from "../../data/api.ts"
import { entryTo, type Entry } from "./entry.ts"

type Service = Output<"POST /v1/sessions/{session}/services">

export interface Reachable {
  readonly service: Service
  readonly entry: Entry
}

/** Starts a service when it is looked at, and says how it is reached. Each look has a token of its own. */
export function useService(session: string, name: Service["name"]): UseQueryResult<Reachable, Fault> {
  return useQuery<Reachable, Fault>({
    queryKey: ["service", session, name],
    queryFn: async ({ signal }) => {
      const service = await http.call("POST /v1/sessions/{session}/services", { session, name }, { signal })
      return { service, entry: await entryTo(session, signal) }
    },
    ...{ gcTime: 0, staleTime: Infinity, refetchOnWindowFocus: false, refetchOnReconnect: false },
  })
}
