import type { SessionInfo } from "@warren/sdk/session.ts"
import { useState, type FormEvent, type ReactElement } from "react"
import { useAsk, useCall } from "../../data/query.ts"
import { putSession } from "../../data/sessions.ts"
import { Button } from "../../parts/button.tsx"
import { toast } from "../../parts/toast.tsx"
import { When } from "../../parts/when.tsx"
import { refusals } from "./refusals.ts"
import { Table } from "../../parts/table.tsx"

const lookEveryMs = 3_000
const reaches = {
  none: "It reaches nothing but itself.",
  proxy: "It reaches only the hosts below, through the proxy.",
  bridge: "It reaches everything public, but nothing of this machine or its network.",
  host: "It reaches whatever this machine reaches: it is not kept apart.",
} as const

/** What it may reach, what it was refused, and one click to allow it. */
export function NetworkSection({ session }: { readonly session: SessionInfo }): ReactElement {
  const { id, network } = session
  const update = useAsk("PATCH /v1/sessions/{id}", { done: (changed) => putSession(id, changed) })
  const isProxy = network.mode === "proxy"
  const allow = isProxy ? network.allow : []
  const set = (hosts: readonly string[]): void => {
    if (isProxy) update.mutate({ id, network: { ...network, allow: [...hosts] } })
  }
  const add = (host: string): void => {
    set([...new Set([...allow, host])])
    toast.say(`${host} is allowed; that is in the log`)
  }
  const isOpen = isProxy && network.access === "all-public"
  return (
    <section className="section">
      <header>
        <h2>Network</h2>
      </header>
      <p className="soft small">
        {isOpen ? "It reaches every public host, through the proxy." : reaches[network.mode]}
      </p>
      {isProxy && (
        <>
          <div className="tags">
            {allow.map((host) => (
              <span className="badge" key={host}>
                {host}
                <button
                  aria-label={`Do not allow ${host} any more`}
                  className="badge-end"
                  onClick={() => set(allow.filter((one) => one !== host))}
                  type="button"
                >
                  ×
                </button>
              </span>
            ))}
            {allow.length === 0 && !isOpen && <span className="soft small">No host is allowed.</span>}
          </div>
          <HostForm add={add} isBusy={update.isPending} />
          <Refused add={add} allow={allow} id={id} isBusy={update.isPending} />
        </>
      )}
    </section>
  )
}

function HostForm({ add, isBusy }: { readonly isBusy: boolean; add(host: string): void }): ReactElement {
  const [host, setHost] = useState("")
  const send = (event: FormEvent): void => {
    event.preventDefault()
    add(host.trim())
    setHost("")
  }
  return (
    <form className="row" onSubmit={send}>
      <input
        aria-label="A host to allow"
        className="input"
        onChange={({ target }) => setHost(target.value)}
        placeholder="github.com, *.npmjs.org"
        required
        spellCheck={false}
        value={host}
      />
      <Button isBusy={isBusy} type="submit">
        Allow
      </Button>
    </form>
  )
}

interface RefusedProps {
  readonly id: string
  readonly allow: readonly string[]
  readonly isBusy: boolean
  add(host: string): void
}

function Refused({ id, allow, isBusy, add }: RefusedProps): ReactElement | null {
  const { data } = useCall("GET /v1/sessions/{id}/denials", { id }, { everyMs: lookEveryMs })
  const all = refusals(data?.denials.map(({ denial }) => denial) ?? [])
  if (all.length === 0) return <p className="soft small">Nothing was refused.</p>
  return (
    <div className="table-room">
      <Table hasActions heads={["Refused", "Times", "Why", "Last"]}>
        {all.map(({ host, wanted, times, at, reason }) => (
          <tr key={wanted}>
            <td className="mono">{wanted}</td>
            <td className="soft">{times}</td>
            <td className="soft">{reason.replaceAll("-", " ")}</td>
            <td className="soft">
              <When at={at} />
            </td>
            <td className="ends">
              {allow.includes(wanted) || allow.includes(host) ? (
                <span className="badge" data-kind="good">
                  allowed now
                </span>
              ) : (
                <Button isBusy={isBusy} onClick={() => add(wanted)} size="small">
                  Allow this host
                </Button>
              )}
            </td>
          </tr>
        ))}
      </Table>
    </div>
  )
}
