import type { Output } from "@warren/sdk/routes.ts"
import { useState, type ReactElement } from "react"
import { usePages } from "../data/pages.ts"
import { useAsk } from "../data/query.ts"
import { Button } from "../parts/button.tsx"
import { Discard } from "../parts/discard.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Field, TextField } from "../parts/field.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { Table } from "../parts/table.tsx"
import { When } from "../parts/when.tsx"
import { List, More, Page } from "./page.tsx"

type Secret = Output<"GET /v1/secrets">["items"][number]

const route = "GET /v1/secrets"

/** Written, replaced and forgotten here; never read. */
export default function Secrets(): ReactElement {
  const pages = usePages(route, {})
  const [editing, edit] = useState<string>()
  const add = (
    <Button icon="plus" kind="main" onClick={() => edit("")}>
      New secret
    </Button>
  )
  return (
    <Page
      action={pages.items?.length ? add : undefined}
      said="Keys and passwords that sessions may be given. They are sealed: nobody can read them back, not even you."
      title="Secrets"
    >
      <List
        {...pages}
        empty={
          <EmptyState action={add} title="No secrets yet">
            An agent needs the key of its model, such as ANTHROPIC_API_KEY; a private repository needs a token.
          </EmptyState>
        }
      >
        {(items) => <SecretTable edit={edit} items={items} />}
      </List>
      <More pages={pages} />
      {editing !== undefined && <SecretDialog close={() => edit(undefined)} known={editing} />}
    </Page>
  )
}

function SecretTable({ items, edit }: { readonly items: readonly Secret[]; edit(name: string): void }): ReactElement {
  return (
    <div className="table-room">
      <Table
        hasActions
        heads={["Name", "Value", { name: "Changed", isWide: true }, { name: "Last used", isWide: true }]}
      >
        {items.map(({ name, updatedAt, usedAt }) => (
          <tr key={name}>
            <td className="mono">{name}</td>
            <td className="soft">sealed</td>
            <td className="soft wide-only">
              <When at={updatedAt} />
            </td>
            <td className="soft wide-only">{usedAt ? <When at={usedAt} /> : "never"}</td>
            <td className="ends">
              <Button kind="quiet" onClick={() => edit(name)} size="small">
                Replace
              </Button>
              <Discard
                act="Forget it"
                input={{ name }}
                name={`Forget ${name}`}
                renews={[route]}
                route="DELETE /v1/secrets/{name}"
              >
                Nothing can bring it back, and sessions that want it will not be given it any more.
              </Discard>
            </td>
          </tr>
        ))}
      </Table>
    </div>
  )
}

/** `known`: the name of the one that is replaced; empty for a new one. */
function SecretDialog({ known, close }: { readonly known: string; close(): void }): ReactElement {
  const [name, setName] = useState(known)
  const [value, setValue] = useState("")
  const set = useAsk("PUT /v1/secrets/{name}", { renews: [route], isQuiet: true, done: close })
  return (
    <FormDialog
      act="Seal it"
      close={close}
      isBusy={set.isPending}
      send={() => set.mutate({ name, value })}
      title={known ? `Replace ${known}` : "New secret"}
    >
      {!known && (
        <Field
          autoComplete="off"
          autoFocus
          name="Name"
          onChange={({ target }) => setName(target.value)}
          pattern="[A-Za-z_][A-Za-z0-9_.\-]*"
          placeholder="ANTHROPIC_API_KEY"
          required
          said="Letters, digits and underscores, as a variable is called."
          spellCheck={false}
          value={name}
        />
      )}
      <TextField
        autoComplete="off"
        name="Value"
        onChange={({ target }) => setValue(target.value)}
        required
        rows={3}
        spellCheck={false}
        value={value}
        wrong={set.error?.message}
      />
    </FormDialog>
  )
}
