import { useState, type ReactElement } from "react"
import { Link, useLocation, useRoute } from "wouter"
import type { Account } from "../data/account.ts"
import { isOfRunner, trouble } from "../data/connection.ts"
import { useSessions } from "../data/sessions.ts"
import { useStore } from "../data/store.ts"
import { Button } from "../parts/button.tsx"
import { Icon } from "../parts/icon.tsx"
import { places } from "../places.ts"
import { AccountMenu } from "./account-menu.tsx"
import { matches } from "./find.ts"
import { SessionLine } from "./session-line.tsx"

/** So few need no search. */
const findableFrom = 8

export function Sidebar({ account }: { readonly account: Account }): ReactElement {
  const [, go] = useLocation()
  return (
    <aside aria-label="Sessions and pages" className="sidebar">
      <header>
        <Link className="mark" href="/">
          <img alt="" src="/icon.svg" />
          Warren
        </Link>
        <Button aria-label="New session" icon="plus" kind="quiet" onClick={() => go("/new")} size="small" />
      </header>
      <SessionList />
      <nav aria-label="Pages" className="sidebar-places">
        {places
          .filter(({ icon, isForAdmins }) => icon && (!isForAdmins || account.user.role === "admin"))
          .map(({ path, title, icon }) => (
            <PlaceLine key={path} path={path}>
              {icon && <Icon name={icon} />}
              {title}
            </PlaceLine>
          ))}
        <AccountMenu account={account} />
      </nav>
    </aside>
  )
}

function SessionList(): ReactElement {
  const sessions = useSessions()
  const fault = useStore(trouble)
  const [find, setFind] = useState("")
  const [, params] = useRoute("/s/:session/:tab?")
  const chosen = params?.session
  const shown = sessions?.filter((session) => matches(session, find))
  return (
    <>
      {(sessions?.length ?? 0) >= findableFrom && (
        <div className="sidebar-find">
          <input
            aria-label="Find a session"
            className="input"
            onChange={({ target }) => setFind(target.value)}
            placeholder="Find a session, or label=value"
            type="search"
            value={find}
          />
        </div>
      )}
      <nav aria-label="Sessions" className="sidebar-sessions">
        {shown?.map((session) => (
          <SessionLine isChosen={session.id === chosen || session.name === chosen} key={session.id} session={session} />
        ))}
        {!shown && isOfRunner(fault) && <p className="line">Your runner is away.</p>}
        {shown?.length === 0 && <p className="line">{find ? "No session is called that." : "No sessions yet."}</p>}
      </nav>
    </>
  )
}

function PlaceLine({ path, children }: { readonly path: string; readonly children: React.ReactNode }): ReactElement {
  const [location] = useLocation()
  const isHere = location === path || location.startsWith(`${path}/`)
  return (
    <Link aria-current={isHere ? "page" : undefined} className="line" href={path}>
      {children}
    </Link>
  )
}
