import { Fault, isCancellation } from "@warren/base/fault.ts"
import type { CallRoute, Input, Output } from "@warren/sdk/routes.ts"
import {
  MutationCache,
  QueryCache,
  QueryClient,
  useMutation,
  useQuery,
  type UseMutationResult,
  type UseQueryResult,
} from "@tanstack/react-query"
import { toast } from "../parts/toast.tsx"
import { http } from "./api.ts"

/** What was read is shown again at once for this long, then asked for anew behind it. */
const freshMs = 5_000

export const queries = new QueryClient({
  queryCache: new QueryCache({ onError: signedOut }),
  mutationCache: new MutationCache({
    onError: (failure, _input, _context, { meta }) => {
      signedOut(failure)
      if (meta?.["isQuiet"] !== true && !isCancellation(failure)) toast.fault(failure)
    },
  }),
  // The client of the SDK tries again by itself where that is safe.
  defaultOptions: { queries: { retry: false, staleTime: freshMs }, mutations: { retry: false } },
})

interface Reading {
  /** False: not asked for yet. */
  readonly isOn?: boolean
  /** Asked for again this often, while the page is seen. */
  readonly everyMs?: number
}

/** The answer of a call, kept under its route and input. */
export function useCall<R extends CallRoute>(
  route: R,
  input: Input<R>,
  { isOn = true, everyMs }: Reading = {},
): UseQueryResult<Output<R>, Fault> {
  return useQuery<Output<R>, Fault>({
    queryKey: [route, input],
    queryFn: ({ signal }) => http.call(route, input, { signal }),
    enabled: isOn,
    ...(everyMs === undefined ? {} : { refetchInterval: everyMs }),
  })
}

interface Asking<R extends CallRoute> {
  /** Routes whose answers are not true any more after it. */
  readonly renews?: readonly CallRoute[]
  /** Failures are shown by whoever asks, not as a toast. */
  readonly isQuiet?: boolean
  done?(out: Output<R>, input: Input<R>): void
}

/** Something that is asked for by a click: `ask.mutate(input)`. What fails is said in a toast. */
export function useAsk<R extends CallRoute>(
  route: R,
  { renews = [], isQuiet = false, done }: Asking<R> = {},
): UseMutationResult<Output<R>, Fault, Input<R>> {
  return useMutation<Output<R>, Fault, Input<R>>({
    mutationFn: (input) => http.call(route, input),
    meta: { isQuiet },
    onSuccess: (out, input) => {
      for (const renewed of renews) void queries.invalidateQueries({ queryKey: [renewed] })
      done?.(out, input)
    },
  })
}

/** Whoever is not signed in any more sees the login page, wherever they were. */
export function signedOut(failure: unknown): void {
  if (failure instanceof Fault && failure.code === "unauthenticated")
    void queries.invalidateQueries({ queryKey: ["GET /v1/login"] })
}
