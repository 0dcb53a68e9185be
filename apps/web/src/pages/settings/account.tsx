import { useState, type FormEvent, type ReactElement } from "react"
import { renewAccount, useAccount } from "../../data/account.ts"
import { useAsk, useCall } from "../../data/query.ts"
import { Button } from "../../parts/button.tsx"
import { Field } from "../../parts/field.tsx"
import { toast } from "../../parts/toast.tsx"
import { When } from "../../parts/when.tsx"
import { List } from "../page.tsx"
import { SettingsPage } from "./settings-page.tsx"
import { Table } from "../../parts/table.tsx"

/** The password, and every browser that is signed in. */
export default function AccountSettings(): ReactElement {
  const account = useAccount()
  return (
    <SettingsPage>
      <section className="section">
        <header>
          <h2>You</h2>
        </header>
        <div className="row small">
          <span>{account?.user.name}</span>
          <span className="badge">{account?.user.role}</span>
          <code className="soft tiny">{account?.user.id}</code>
        </div>
      </section>
      <PasswordForm />
      <SignIns />
    </SettingsPage>
  )
}

function PasswordForm(): ReactElement {
  const [current, setCurrent] = useState("")
  const [password, setPassword] = useState("")
  const set = useAsk("PUT /v1/account/password", {
    isQuiet: true,
    renews: ["GET /v1/sign-ins"],
    done: () => {
      toast.say("The password is set. Every other browser is signed out.")
      setCurrent("")
      setPassword("")
    },
  })
  const send = (event: FormEvent): void => {
    event.preventDefault()
    set.mutate({ password, ...(current ? { current } : {}) })
  }
  return (
    <section className="section">
      <header>
        <h2>Password</h2>
      </header>
      <p>With one you can sign in from any browser. Setting it signs every other browser out.</p>
      <form className="inline-form" onSubmit={send}>
        <Field
          autoComplete="current-password"
          name="The one there is"
          onChange={({ target }) => setCurrent(target.value)}
          placeholder="empty if there is none"
          type="password"
          value={current}
        />
        <Field
          autoComplete="new-password"
          minLength={12}
          name="New password"
          onChange={({ target }) => setPassword(target.value)}
          placeholder="12 characters or more"
          required
          type="password"
          value={password}
        />
        <Button isBusy={set.isPending} type="submit">
          Set password
        </Button>
      </form>
      {set.error && (
        <p className="small" role="alert" style={{ color: "var(--bad)", margin: 0 }}>
          {set.error.message}
        </p>
      )}
    </section>
  )
}

const methods = { password: "a password", link: "a link", oidc: "single sign-on" } as const

function SignIns(): ReactElement {
  const { data, error, refetch } = useCall("GET /v1/sign-ins", {})
  const end = useAsk("DELETE /v1/sign-ins/{id}", {
    renews: ["GET /v1/sign-ins"],
    done: (_out, { id }) => {
      if (data?.items.find((one) => one.id === id)?.isThis) void renewAccount()
    },
  })
  return (
    <section className="section">
      <header>
        <h2>Browsers that are signed in</h2>
      </header>
      <List
        empty={<p className="soft">None: you are here with a token.</p>}
        error={error}
        items={data?.items}
        retry={() => void refetch()}
      >
        {(items) => (
          <div className="table-room">
            <Table
              hasActions
              heads={["From", "With", { name: "Last seen", isWide: true }, { name: "Ends", isWide: true }]}
            >
              {items.map(({ id, address, method, usedAt, expiresAt, isThis }) => (
                <tr key={id}>
                  <td>
                    {address || "here"} {isThis && <span className="badge">this one</span>}
                  </td>
                  <td className="soft">{methods[method]}</td>
                  <td className="soft wide-only">
                    <When at={usedAt} />
                  </td>
                  <td className="soft wide-only">{new Date(expiresAt).toLocaleDateString()}</td>
                  <td className="ends">
                    <Button kind="quiet" onClick={() => end.mutate({ id })} size="small">
                      Sign out
                    </Button>
                  </td>
                </tr>
              ))}
            </Table>
          </div>
        )}
      </List>
    </section>
  )
}
