import { defaultScopes } from "@warren/protocol/token-scope.ts"
import type { Output } from "@warren/sdk/routes.ts"
import { useState, type ReactElement } from "react"
import { useCall } from "../../data/query.ts"
import { Button } from "../../parts/button.tsx"
import { Discard } from "../../parts/discard.tsx"
import { EmptyState } from "../../parts/empty-state.tsx"
import { Table } from "../../parts/table.tsx"
import { When } from "../../parts/when.tsx"
import { List } from "../page.tsx"
import { SettingsPage } from "./settings-page.tsx"
import { TokenDialog, type Made } from "./token-dialog.tsx"
import { ToldOnce } from "./told-once.tsx"

type Token = Output<"GET /v1/tokens">["items"][number]

/** What programs show to say whose they are. */
export default function Tokens(): ReactElement {
  const { data, error, refetch } = useCall("GET /v1/tokens", {})
  const [isAsking, ask] = useState(false)
  const [made, tell] = useState<Made>()
  const button = (
    <Button icon="plus" kind="main" onClick={() => ask(true)}>
      New token
    </Button>
  )
  return (
    <SettingsPage>
      <section className="section">
        <header>
          <h2>Tokens</h2>
          {data?.items.length ? button : undefined}
        </header>
        <p>For programs that work in your name: the SDK, curl, MCP clients, and whatever was written for E2B.</p>
        <List
          empty={
            <EmptyState action={button} title="No tokens yet">
              Make one, and copy the lines that connect your program.
            </EmptyState>
          }
          error={error}
          items={data?.items}
          retry={() => void refetch()}
        >
          {(items) => <TokenTable items={items} />}
        </List>
      </section>
      {isAsking && (
        <TokenDialog
          close={() => ask(false)}
          made={(token) => {
            ask(false)
            tell(token)
          }}
        />
      )}
      {made && <ToldOnce close={() => tell(undefined)} form={made.form} label={made.about.label} token={made.token} />}
    </SettingsPage>
  )
}

function TokenTable({ items }: { readonly items: readonly Token[] }): ReactElement {
  return (
    <div className="table-room">
      <Table hasActions heads={["Name", "May", { name: "Last used", isWide: true }, { name: "Ends", isWide: true }]}>
        {items.map((token) => (
          <tr key={token.id}>
            <td>{token.label}</td>
            <td className="soft" title={token.scopes.join(", ")}>
              {mayInWords(token)}
            </td>
            <td className="soft wide-only">{token.usedAt ? <When at={token.usedAt} /> : "never"}</td>
            <td className="soft wide-only">
              {token.expiresAt ? new Date(token.expiresAt).toLocaleDateString() : "never"}
            </td>
            <td className="ends">
              <Discard
                act="Revoke it"
                input={{ id: token.id }}
                name={`Revoke ${token.label}`}
                renews={["GET /v1/tokens"]}
                route="DELETE /v1/tokens/{id}"
              >
                Whatever uses it is refused at once.
              </Discard>
            </td>
          </tr>
        ))}
      </Table>
    </div>
  )
}

function mayInWords({ scopes, limits: { namePrefix, sessionsMax } }: Token): string {
  const has = new Set<string>(scopes)
  const isUsual = has.size === defaultScopes.length && defaultScopes.every((scope) => has.has(scope))
  const isLooking = scopes.every((scope) => scope.endsWith(":read"))
  const what = isUsual ? "everything but accounts" : isLooking ? "only look" : `${scopes.length} scopes`
  const [prefix, most] = [
    namePrefix && `sessions ${namePrefix}…`,
    sessionsMax !== undefined && `at most ${sessionsMax}`,
  ]
  return [what, prefix, most].filter(Boolean).join(" · ")
}
