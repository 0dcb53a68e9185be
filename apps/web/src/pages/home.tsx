import type { ReactElement } from "react"
import { Link } from "wouter"
import { useSessions } from "../data/sessions.ts"
import { Icon } from "../parts/icon.tsx"
import { lookInWords, lookOf } from "../parts/look.ts"
import { StateDot } from "../parts/state-dot.tsx"
import { When } from "../parts/when.tsx"
import { useStart } from "../session/use-start.ts"

const shownMax = 8

/** Where one starts: the two ways to begin, and what was last worked on. */
export default function Home(): ReactElement {
  const sessions = useSessions()
  const sandbox = useStart("terminal")
  const waiting = sessions?.filter((session) => lookOf(session) === "asks") ?? []
  return (
    <main className="main">
      <div className="page">
        <div className="page-inner">
          <div className="page-head">
            <div>
              <h1>{sessions?.length === 0 ? "Welcome. What shall it be?" : "Start something"}</h1>
              <p>A private computer for you or an agent, ready at once.</p>
            </div>
          </div>
          <div className="starts">
            <button className="start" disabled={sandbox.isPending} onClick={() => sandbox.start()} type="button">
              <strong>
                <Icon name="terminal" /> Empty sandbox
              </strong>
              <span>{sandbox.isPending ? "Starting…" : "A terminal in a fresh machine, in a second."}</span>
            </button>
            <Link className="start" href="/new">
              <strong>
                <Icon name="chat" /> Agent on a repository
              </strong>
              <span>Pick a repository and an agent, say what you want, watch it work.</span>
            </Link>
          </div>
          {waiting.length > 0 && <Recent name="Needs you" sessions={waiting} />}
          {sessions && sessions.length > 0 && <Recent name="Last used" sessions={sessions.slice(0, shownMax)} />}
        </div>
      </div>
    </main>
  )
}

function Recent({
  name,
  sessions,
}: {
  readonly name: string
  readonly sessions: NonNullable<ReturnType<typeof useSessions>>
}): ReactElement {
  return (
    <section>
      <h2>{name}</h2>
      <div className="recent">
        {sessions.map((session) => (
          <Link className="line" href={`/s/${session.name}`} key={session.id}>
            <StateDot isSilent session={session} />
            <span className="cut recent-name">{session.name}</span>
            <span className="cut spread soft tiny">{lookInWords(session)}</span>
            <When at={session.usedAt} />
          </Link>
        ))}
      </div>
    </section>
  )
}
