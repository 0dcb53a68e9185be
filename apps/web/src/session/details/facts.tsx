import type { SessionInfo } from "@warren/sdk/session.ts"
import type { ReactElement, ReactNode } from "react"
import { CopyButton } from "../../parts/copy-button.tsx"
import { duration } from "../../parts/when.tsx"

/** What it is made of, as a list. */
export function Facts({ session }: { readonly session: SessionInfo }): ReactElement {
  const { id, image, driver, profile, createdAt, expiresAt, workspace, secrets, keys, idle, acquireMs } = session
  const facts: readonly (readonly [string, ReactNode])[] = [
    [
      "Id",
      <span className="row" key="id">
        <code>{id}</code> <CopyButton name="Copy the id" text={id} />
      </span>,
    ],
    ["Image", image],
    ["Driver", `${driver}, ${profile}`],
    ["Workspace", workspace ?? "none"],
    ["Made", `${new Date(createdAt).toLocaleString()}, ready in ${duration(acquireMs)}`],
    ["Ends", expiresAt ? new Date(expiresAt).toLocaleString() : "when it is deleted"],
    ["When idle", idle ? `${idle.action} after ${duration(idle.afterMs)}` : "stays awake"],
    ["Secrets inside", secrets.length > 0 ? secrets.join(", ") : "none"],
    ["Keys through the broker", keys.length > 0 ? keys.map(({ scope }) => scope).join(", ") : "none"],
  ]
  return (
    <section className="section">
      <header>
        <h2>About it</h2>
      </header>
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
