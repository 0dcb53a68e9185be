import type { Fault } from "@warren/base/fault.ts"
import type { Input, Output, PagedRoute } from "@warren/sdk/routes.ts"
import { useInfiniteQuery } from "@tanstack/react-query"
import { http } from "./api.ts"

export interface Pages<T> {
  /** Undefined until the first of them are known. */
  readonly items: readonly T[] | undefined
  readonly error: Fault | null
  readonly isLoadingMore: boolean
  /** Reads on; undefined when that is all. */
  readonly more: (() => void) | undefined
  retry(): void
}

type ItemOf<R extends PagedRoute> = Output<R> extends { readonly items: readonly (infer T)[] } ? T : never

interface Part {
  readonly items: readonly unknown[]
  readonly nextCursor?: string | undefined
}

/** A list that comes in parts, as far as it was asked for. */
export function usePages<R extends PagedRoute>(route: R, input: Input<R>): Pages<ItemOf<R>> {
  const { data, error, isFetchingNextPage, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery<
    Part,
    Fault,
    { readonly pages: readonly Part[] },
    readonly unknown[],
    string
  >({
    queryKey: [route, input, "pages"],
    queryFn: async ({ pageParam, signal }) =>
      (await http.call(route, { ...input, ...(pageParam ? { cursor: pageParam } : {}) }, { signal })) as Part,
    initialPageParam: "",
    getNextPageParam: ({ nextCursor }) => nextCursor,
  })
  return {
    items: data?.pages.flatMap(({ items }) => items as readonly ItemOf<R>[]),
    ...{ error, isLoadingMore: isFetchingNextPage },
    more: hasNextPage ? () => void fetchNextPage() : undefined,
    retry: () => void refetch(),
  }
}
