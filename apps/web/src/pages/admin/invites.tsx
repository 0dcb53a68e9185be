import type { Input, Output } from "@warren/sdk/routes.ts"
import { useState, type FormEvent, type ReactElement } from "react"
import { useAsk, useCall } from "../../data/query.ts"
import { Button } from "../../parts/button.tsx"
import { CopyButton } from "../../parts/copy-button.tsx"
import { EmptyState } from "../../parts/empty-state.tsx"
import { Field, SelectField } from "../../parts/field.tsx"
import { List } from "../page.tsx"
import { AdminPage } from "./admin-page.tsx"
import { Table } from "../../parts/table.tsx"

type Made = Output<"POST /v1/invites">

const dayMs = 24 * 3600_000

export default function Invites(): ReactElement {
  const { data, error, refetch } = useCall("GET /v1/invites", {})
  const revoke = useAsk("DELETE /v1/invites/{id}", { renews: ["GET /v1/invites"] })
  return (
    <AdminPage>
      <InviteForm />
      <section className="section">
        <header>
          <h2>Not used yet</h2>
        </header>
        <List
          empty={<EmptyState title="No invites are open">Each lets one person in, once.</EmptyState>}
          error={error}
          items={data?.items}
          retry={() => void refetch()}
        >
          {(items) => (
            <div className="table-room">
              <Table hasActions heads={["For", "Role", "Ends"]}>
                {items.map(({ id, name, role, expiresAt }) => (
                  <tr key={id}>
                    <td>{name ?? "whoever has the link"}</td>
                    <td className="soft">{role}</td>
                    <td className="soft">{new Date(expiresAt).toLocaleString()}</td>
                    <td className="ends">
                      <Button kind="quiet" onClick={() => revoke.mutate({ id })} size="small">
                        Take back
                      </Button>
                    </td>
                  </tr>
                ))}
              </Table>
            </div>
          )}
        </List>
      </section>
    </AdminPage>
  )
}

function InviteForm(): ReactElement {
  const [name, setName] = useState("")
  const [role, setRole] = useState<"member" | "admin">("member")
  const [days, setDays] = useState("7")
  const [made, tell] = useState<Made>()
  const make = useAsk("POST /v1/invites", { renews: ["GET /v1/invites"], isQuiet: true, done: tell })
  const send = (event: FormEvent): void => {
    event.preventDefault()
    const asked: Input<"POST /v1/invites"> = { role, lifeMs: Number(days) * dayMs, ...(name ? { name } : {}) }
    make.mutate(asked)
  }
  return (
    <section className="section">
      <header>
        <h2>Invite somebody</h2>
      </header>
      <p>
        The link makes one person a user and signs them in. They have a runner and an account on this machine of their
        own.
      </p>
      <form className="inline-form" onSubmit={send}>
        <Field
          autoComplete="off"
          name="Name"
          onChange={({ target }) => setName(target.value)}
          pattern="[a-z_][a-z0-9_\-]*"
          placeholder="they choose"
          value={name}
        />
        <SelectField name="Role" onChange={({ target }) => setRole(target.value as "member" | "admin")} value={role}>
          <option value="member">member</option>
          <option value="admin">admin</option>
        </SelectField>
        <SelectField name="Good for" onChange={({ target }) => setDays(target.value)} value={days}>
          <option value="1">a day</option>
          <option value="7">a week</option>
          <option value="30">a month</option>
        </SelectField>
        <Button isBusy={make.isPending} kind="main" type="submit">
          Make a link
        </Button>
      </form>
      {make.error && (
        <p className="small" role="alert" style={{ color: "var(--bad)", margin: 0 }}>
          {make.error.message}
        </p>
      )}
      {made && (
        <div className="told-once" role="status">
          <code data-told>{made.link}</code>
          <CopyButton name="Copy the link" text={made.link} />
        </div>
      )}
    </section>
  )
}
