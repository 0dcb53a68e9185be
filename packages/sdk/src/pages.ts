import type { Http, Waiting } from "./http.ts"
import type { Input, Output, PagedRoute } from "./routes.ts"

type Page<T> = { readonly items: readonly T[]; readonly nextCursor?: string | undefined }
type Listed<R extends PagedRoute> = Output<R> extends Page<infer T> ? T : never

/** Everything of a list, a page at a time as it is asked for. */
export async function* pages<R extends PagedRoute>(
  http: Http,
  route: R,
  input: Input<R>,
  waiting: Waiting = {},
): AsyncGenerator<Listed<R>, void, void> {
  let cursor: { cursor?: string } = {}
  do {
    const page = (await http.call(route, { ...input, ...cursor }, waiting)) as Page<Listed<R>>
    yield* page.items
    cursor = page.nextCursor === undefined ? {} : { cursor: page.nextCursor }
  } while (cursor.cursor !== undefined)
}
