import { useEffect, useRef, useState, type FormEvent, type ReactElement } from "react"
import { useLocation } from "wouter"
import { renewAccount, useAccount } from "../data/account.ts"
import { useAsk } from "../data/query.ts"
import { Button } from "../parts/button.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Field } from "../parts/field.tsx"

/**
 * Where an invite's link leads. The code stands after the #, so it is in no log. A link that says for whom it is signs in at once;
 * another asks who its reader wants to be. Whoever is signed in already is asked first: nobody is made somebody else by a link.
 */
export function Join(): ReactElement {
  const account = useAccount()
  const [, go] = useLocation()
  const [code] = useState(() => location.hash.slice(1))
  const [next] = useState(() => placeIn(new URLSearchParams(location.search).get("next")))
  const done = (): void => {
    history.replaceState(null, "", "/join")
    void renewAccount().then(() => go(next))
  }
  const redeem = useAsk("POST /v1/invites/redeem", { isQuiet: true, done })
  const hasAsked = useRef(false)
  const isStranger = account === null
  const { mutate } = redeem
  useEffect(() => {
    if (!isStranger || code === "" || hasAsked.current) return
    hasAsked.current = true
    mutate({ code })
  }, [isStranger, code, mutate])
  const wantsName = redeem.error?.code === "invalid"
  if (account || wantsName) return <JoinForm code={code} isSignedIn={Boolean(account)} redeem={redeem} />
  return (
    <main className="main" style={{ height: "100dvh" }}>
      {redeem.error || code === "" ? (
        <EmptyState
          action={<Button onClick={() => go("/")}>Sign in another way</Button>}
          title="This link does not work any more"
        >
          Each link lets one person in, once, and not for long. Start Warren again for a new one, or ask whoever sent
          it.
        </EmptyState>
      ) : (
        <EmptyState title="Signing you in…" />
      )}
    </main>
  )
}

/** Where to go on: a place on this page, or home. */
function placeIn(next: string | null): string {
  return next !== null && /^\/(?![/\\])/.test(next) ? next : "/"
}

interface JoinFormProps {
  readonly code: string
  readonly isSignedIn: boolean
  readonly redeem: ReturnType<typeof useAsk<"POST /v1/invites/redeem">>
}

function JoinForm({ code, isSignedIn, redeem }: JoinFormProps): ReactElement {
  const [name, setName] = useState("")
  const [password, setPassword] = useState("")
  const [, go] = useLocation()
  const send = (event: FormEvent): void => {
    event.preventDefault()
    redeem.mutate({ code, ...(name ? { name } : {}), ...(password ? { password } : {}) })
  }
  return (
    <main className="welcome">
      <div>
        <img alt="" src="/icon.svg" />
        <h1>Welcome to Warren</h1>
        {isSignedIn && (
          <p className="soft">You are signed in already. Joining here makes you whoever this invite is for.</p>
        )}
        <form className="stack" onSubmit={send}>
          <Field
            autoComplete="username"
            name="Name"
            onChange={({ target }) => setName(target.value)}
            required={!isSignedIn}
            said="That of your Linux account on this machine; leave it empty if the invite has one."
            value={name}
          />
          <Field
            autoComplete="new-password"
            minLength={12}
            name="Password for next time"
            onChange={({ target }) => setPassword(target.value)}
            said="12 characters or more."
            type="password"
            value={password}
            wrong={redeem.error && name ? redeem.error.message : undefined}
          />
          <Button isBusy={redeem.isPending} kind="main" type="submit">
            Join
          </Button>
          {isSignedIn && <Button onClick={() => go("/")}>Stay who I am</Button>}
        </form>
      </div>
    </main>
  )
}
