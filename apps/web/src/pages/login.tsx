import { useState, type FormEvent, type ReactElement } from "react"
import { renewAccount } from "../data/account.ts"
import { useAsk, useCall } from "../data/query.ts"
import { Button } from "../parts/button.tsx"
import { Field } from "../parts/field.tsx"

/** For whoever has a password or an identity provider; whoever has neither finds out how to get in. */
export function Login(): ReactElement {
  const methods = useCall("GET /v1/login", {})
  const login = useAsk("POST /v1/login/password", { isQuiet: true, done: () => void renewAccount() })
  const [name, setName] = useState("")
  const [password, setPassword] = useState("")
  const send = (event: FormEvent): void => {
    event.preventDefault()
    login.mutate({ name, password })
  }
  return (
    <main className="welcome">
      <div>
        <img alt="" src="/icon.svg" />
        <h1>Sign in to Warren</h1>
        {methods.data?.oidc && (
          <a
            className="button"
            data-kind="main"
            href={`${methods.data.oidc}?next=${encodeURIComponent(location.pathname)}`}
          >
            Continue with your organisation
          </a>
        )}
        <form className="stack" onSubmit={send}>
          <Field
            autoComplete="username"
            name="Name"
            onChange={({ target }) => setName(target.value)}
            required
            value={name}
          />
          <Field
            autoComplete="current-password"
            name="Password"
            onChange={({ target }) => setPassword(target.value)}
            required
            type="password"
            value={password}
            wrong={login.error ? `That did not work: ${login.error.message}.` : undefined}
          />
          <Button isBusy={login.isPending} kind="main" type="submit">
            Sign in
          </Button>
        </form>
        <p className="small soft">
          No password yet? Warren prints a link when it starts, which signs one browser in, once. Otherwise ask an admin
          for an invite.
        </p>
      </div>
    </main>
  )
}
