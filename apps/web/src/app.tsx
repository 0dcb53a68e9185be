import { lazy, Suspense, useEffect, type ReactElement } from "react"
import { Route, Switch, useLocation } from "wouter"
import { useAccount } from "./data/account.ts"
import { followSessions } from "./data/sessions.ts"
import { ConnectionBar } from "./frame/connection-bar.tsx"
import { Frame } from "./frame/frame.tsx"
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
  const userId = account?.user.id
  useEffect(() => {
    if (userId === undefined) return
    const leave = new AbortController()
    // What ends it is being signed out, which shows by itself.
    followSessions(leave.signal).catch(() => undefined)
    return () => leave.abort()
  }, [userId])
  if (account === undefined) return <Waiting>Connecting…</Waiting>
  if (account === null) return <Login />
  return (
    <Frame account={account}>
      <Shortcuts />
      <Suspense fallback={<Waiting>Loading…</Waiting>}>
        <Switch>
          {places.map(({ path, title, page: Page }) => (
            <Route key={path} path={path}>
              <Titled title={title} />
              <Page />
            </Route>
          ))}
          <Route path="/s/:session/:tab?">
            {({ session, tab }) => <SessionPage key={session} tab={tab} which={decodeURIComponent(session)} />}
          </Route>
          <Route>
            <NotFound />
          </Route>
        </Switch>
      </Suspense>
    </Frame>
  )
}

function Titled({ title }: { readonly title: string }): null {
  const [path] = useLocation()
  useEffect(() => {
    document.title = title === "Warren" ? title : `${title} · Warren`
  }, [title, path])
  return null
}
