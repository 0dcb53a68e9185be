import type { SessionInfo } from "@warren/sdk/session.ts"
import type { ReactElement } from "react"
import { useCall } from "../../data/query.ts"
import { Failure, Waiting } from "../../parts/empty-state.tsx"
import { Icon } from "../../parts/icon.tsx"
import { When } from "../../parts/when.tsx"
import { findings, type Finding } from "./posture-words.ts"

/** How well it is shut in: what was measured, in words, each with its evidence. */
export function PostureSection({ session }: { readonly session: SessionInfo }): ReactElement {
  const { data, error, refetch } = useCall("GET /v1/sessions/{id}/posture", { id: session.id })
  const found = data ? findings(data) : []
  return (
    <section className="section">
      <header>
        <h2>Isolation</h2>
        {data && (
          <span className="soft tiny">
            measured <When at={data.measuredAt} />
          </span>
        )}
      </header>
      {error && !data && <Failure fault={error} retry={() => void refetch()} />}
      {!data && !error && <Waiting>Measuring…</Waiting>}
      {data && found.length === 0 && (
        <p className="soft">The driver {session.driver} shuts nothing in: for development only.</p>
      )}
      <div className="findings">
        {found.map((one) => (
          <FindingLine finding={one} key={one.words} />
        ))}
      </div>
    </section>
  )
}

function FindingLine({ finding: { words, isGood, evidence } }: { readonly finding: Finding }): ReactElement {
  return (
    <details className="finding" data-kind={isGood ? "good" : "warn"}>
      <summary>
        <Icon name={isGood ? "check" : "warning"} size={14} />
        <span className="spread">{words}</span>
        <Icon name="chevron" size={10} />
      </summary>
      <pre>{evidence}</pre>
    </details>
  )
}
