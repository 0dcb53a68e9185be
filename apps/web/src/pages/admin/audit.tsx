import type { Output } from "@warren/sdk/routes.ts"
import { useInfiniteQuery } from "@tanstack/react-query"
import { useState, type ReactElement } from "react"
import { http } from "../../data/api.ts"
import { useAsk } from "../../data/query.ts"
import { Button } from "../../parts/button.tsx"
import { Icon } from "../../parts/icon.tsx"
import { List, More } from "../page.tsx"
import { AdminPage } from "./admin-page.tsx"
import { useUserNames } from "./user-names.ts"
import type { Fault } from "@warren/base/fault.ts"
import { Table } from "../../parts/table.tsx"

type Answer = Output<"GET /v1/audit">
type Entry = Answer["items"][number]

const perPage = 100
const end = Number.MAX_SAFE_INTEGER

/** Who did what, the newest first. */
export default function Audit(): ReactElement {
  const [words, setWords] = useState("")
  const log = useLog()
  const names = useUserNames()
  const shown = log.items?.filter((entry) => isAbout(entry, names.get(entry.user) ?? "", words.toLowerCase()))
  return (
    <AdminPage>
      <section className="section">
        <header>
          <h2>Audit log</h2>
          <a className="button" data-size="small" download="audit.jsonl" href="/v1/audit/export">
            <Icon name="download" size={14} /> Export
          </a>
        </header>
        <p>Every entry holds the hash of the one before it, so nothing can be changed or taken out unseen.</p>
        <Verify />
        <input
          aria-label="Narrow the log"
          className="input"
          onChange={({ target }) => setWords(target.value)}
          placeholder="Narrow by user, action, subject or result"
          type="search"
          value={words}
        />
        <List
          empty={
            <p className="soft">{words ? "Nothing of what is shown is about that." : "Nothing has happened yet."}</p>
          }
          error={log.error}
          items={shown}
          retry={log.retry}
        >
          {(items) => <AuditTable items={items} names={names} />}
        </List>
        <More pages={log} />
      </section>
    </AdminPage>
  )
}

function Verify(): ReactElement {
  const verify = useAsk("GET /v1/audit/verify")
  const found = verify.data
  return (
    <div className="row">
      <Button icon="check" isBusy={verify.isPending} onClick={() => verify.mutate({})} size="small">
        Verify
      </Button>
      {found && (
        <span className="badge" data-kind={found.isWhole ? "good" : "bad"} role="status">
          {found.isWhole ? `whole: ${found.entries} entries` : `not whole: ${found.problem ?? "it was changed"}`}
        </span>
      )}
    </div>
  )
}

function AuditTable({
  items,
  names,
}: {
  readonly items: readonly Entry[]
  readonly names: ReadonlyMap<string, string>
}): ReactElement {
  return (
    <div className="table-room">
      <Table heads={["When", "Who", "What", { name: "To", isWide: true }, { name: "From", isWide: true }, "Result"]}>
        {items.map(({ seq, time, user, action, subject, address, result }) => (
          <tr key={seq}>
            <td className="soft" title={time}>
              {new Date(time).toLocaleString()}
            </td>
            <td>{names.get(user) ?? (user || "a stranger")}</td>
            <td className="mono">{action}</td>
            <td className="mono soft wide-only">{subject || "–"}</td>
            <td className="soft wide-only">{address || "–"}</td>
            <td>
              <span className="badge" data-kind={result === "ok" ? "good" : "bad"}>
                {result}
              </span>
            </td>
          </tr>
        ))}
      </Table>
    </div>
  )
}

/** Read from its end backwards, as far as it was asked for. */
function useLog() {
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = useInfiniteQuery<
    Answer,
    Fault,
    { readonly pages: readonly Answer[] },
    readonly unknown[],
    number
  >({
    queryKey: ["GET /v1/audit", {}, "pages"],
    queryFn: ({ pageParam, signal }) => http.call("GET /v1/audit", { before: pageParam, limit: perPage }, { signal }),
    initialPageParam: end,
    getNextPageParam: ({ items }) => (items.length < perPage ? undefined : items[0]?.seq),
  })
  return {
    items: data?.pages.flatMap(({ items }) => items.toReversed()),
    ...{ error, isLoadingMore: isFetchingNextPage },
    more: hasNextPage ? () => void fetchNextPage() : undefined,
    retry: () => void refetch(),
  }
}

function isAbout({ user, action, subject, result, address }: Entry, name: string, words: string): boolean {
  return [user, name, action, subject, result, address].some((field) => field.toLowerCase().includes(words))
}
