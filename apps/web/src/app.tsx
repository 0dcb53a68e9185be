import { lazy, Suspense, useEffect, type ReactElement, type ReactNode } from "react"
import { Route, Switch, useLocation } from "wouter"
import { useAccount } from "./data/account.ts"
import { isOfRunner, trouble } from "./data/connection.ts"
import { sessions, useLiveSessions } from "./data/sessions.ts"
import { useStore } from "./data/store.ts"
import { ConnectionBar } from "./frame/connection-bar.tsx"
import { Frame } from "./frame/frame.tsx"
import { RunnerAway } from "./frame/runner-away.tsx"
import { Shortcuts } from "./frame/shortcuts.tsx"
import { Join } from "./pages/join.tsx"
import { Login } from "./pages/login.tsx"
import { NotFound } from "./pages/not-found.tsx"
import { Waiting } from "./parts/empty-state.tsx"
import { Toasts } from "./parts/toast.tsx"
import { places } from "./places.ts"

const SessionPage = lazy(() => import("./session/session-page.tsx"))

export function App(): ReactElement {
  return (
    <>
      <Switch>
        <Route path="/join" component={Join} />
        <Route>
          <SignedIn />
        </Route>
      </Switch>
      <Toasts />
      <ConnectionBar />
    </>
  )
}

/** Everything for whoever has said who they are; the login page for whoever has not. */
function SignedIn(): ReactElement {
  const account = useAccount()
  useLiveSessions(account?.user.id)
  if (account === undefined) return <Waiting>Connecting…</Waiting>
  if (account === null) return <Login />
  return (
    <Frame account={account}>
      <Shortcuts />
      <Suspense fallback={<Waiting>Loading…</Waiting>}>
        <Switch>
          {places.map(({ path, title, page: Page, needsRunner = false }) => (
            <Route key={path} path={path}>
              <Titled title={title} />
              {needsRunner ? (
                <WithRunner>
                  <Page />
                </WithRunner>
              ) : (
                <Page />
              )}
            </Route>
          ))}
          <Route path="/s/:session/:tab?">
            {({ session, tab }) => (
              <WithRunner>
                <SessionPage key={session} tab={tab} which={decodeURIComponent(session)} />
              </WithRunner>
            )}
          </Route>
          <Route>
            <NotFound />
          </Route>
        </Switch>
      </Suspense>
    </Frame>
  )
}

/** What a runner has to tell; while it never has, what is the matter with it. */
function WithRunner({ children }: { readonly children: ReactNode }): ReactNode {
  const isKnown = useStore(sessions) !== undefined
  const fault = useStore(trouble)
  return isKnown || !isOfRunner(fault) ? children : <RunnerAway fault={fault} />
}

function Titled({ title }: { readonly title: string }): null {
  const [path] = useLocation()
  useEffect(() => {
    document.title = title === "Warren" ? title : `${title} · Warren`
  }, [title, path])
  return null
}
