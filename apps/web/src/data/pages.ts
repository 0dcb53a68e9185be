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

/** A list that comes in parts, as far as it was asked for. */
export function usePages<R extends PagedRoute>(
  route: R,
  input: Input<R>,
  isOn = true,
): Pages<Output<R>["items"][number]> {
  const { data, error, isFetchingNextPage, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery<
    Output<R>,
    Fault,
    { readonly pages: readonly Output<R>[] },
    readonly unknown[],
    string
  >({
    queryKey: [route, input, "pages"],
    queryFn: ({ pageParam, signal }) =>
      http.call(route, { ...input, ...(pageParam ? { cursor: pageParam } : {}) }, { signal }),
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor,
    enabled: isOn,
  })
  return {
    items: data?.pages.flatMap(({ items }) => items as Output<R>["items"][number][]),
    ...{ error, isLoadingMore: isFetchingNextPage },
    more: hasNextPage ? () => void fetchNextPage() : undefined,
    retry: () => void refetch(),
  }
}
