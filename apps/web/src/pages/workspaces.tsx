import type { Output } from "@warren/sdk/routes.ts"
import { useState, type ReactElement } from "react"
import { Link } from "wouter"
import { usePages } from "../data/pages.ts"
import { useAsk } from "../data/query.ts"
import { useSession } from "../data/sessions.ts"
import { Button } from "../parts/button.tsx"
import { Discard } from "../parts/discard.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Field } from "../parts/field.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { Table } from "../parts/table.tsx"
import { bytes, When } from "../parts/when.tsx"
import { useStart } from "../session/use-start.ts"
import { List, More, Page } from "./page.tsx"

type Workspace = Output<"GET /v1/workspaces">["items"][number]

const route = "GET /v1/workspaces"
const gibibyte = 2 ** 30

/** Folders that outlive sessions. */
export default function Workspaces(): ReactElement {
  const pages = usePages(route, {})
  const [isAdding, add] = useState(false)
  const button = (
    <Button icon="plus" kind="main" onClick={() => add(true)}>
      New workspace
    </Button>
  )
  return (
    <Page
      action={pages.items?.length ? button : undefined}
      said="Folders that outlive sessions. A session that is given one finds it at /workspace."
      title="Workspaces"
    >
      <List
        {...pages}
        empty={
          <EmptyState action={button} title="No workspaces yet">
            What a session writes goes with it; what it writes into a workspace stays for the next one.
          </EmptyState>
        }
      >
        {(items) => <WorkspaceTable items={items} />}
      </List>
      <More pages={pages} />
      {isAdding && <WorkspaceDialog close={() => add(false)} />}
    </Page>
  )
}

function WorkspaceTable({ items }: { readonly items: readonly Workspace[] }): ReactElement {
  return (
    <div className="table-room">
      <Table hasActions heads={["Name", "Holds", "In", { name: "Made", isWide: true }]}>
        {items.map((one) => (
          <WorkspaceRow key={one.name} workspace={one} />
        ))}
      </Table>
    </div>
  )
}

function WorkspaceRow({ workspace }: { readonly workspace: Workspace }): ReactElement {
  const { name, usedBytes, limitBytes, limit, holders, createdAt } = workspace
  const session = useStart("files")
  const measure = useAsk("GET /v1/workspaces/{name}/usage", { renews: [route] })
  return (
    <tr>
      <td>{name}</td>
      <td className="soft">
        {usedBytes === undefined ? "not measured" : bytes(usedBytes)}
        {limit !== "none" && ` of ${bytes(limitBytes)}`}
      </td>
      <td>
        {holders.length === 0 ? (
          <span className="soft">no session</span>
        ) : (
          holders.map((id) => <Holder id={id} key={id} />)
        )}
      </td>
      <td className="soft wide-only">
        <When at={createdAt} />
      </td>
      <td className="ends">
        <Button
          aria-label={`Measure ${name}`}
          icon="refresh"
          isBusy={measure.isPending}
          kind="quiet"
          onClick={() => measure.mutate({ name })}
          size="small"
        />
        <Button isBusy={session.isPending} kind="quiet" onClick={() => session.start({ workspace: name })} size="small">
          Open in a session
        </Button>
        <Discard
          act="Delete it"
          input={{ name }}
          name={`Delete ${name}`}
          renews={[route]}
          route="DELETE /v1/workspaces/{name}"
        >
          Everything in it goes.
          {holders.length > 0 && " A session has it: that one has to be deleted first."}
        </Discard>
      </td>
    </tr>
  )
}

function Holder({ id }: { readonly id: string }): ReactElement {
  const session = useSession(id)
  return (
    <>
      <Link href={`/s/${session?.name ?? id}`}>{session?.name ?? id}</Link>{" "}
    </>
  )
}

function WorkspaceDialog({ close }: { close(): void }): ReactElement {
  const [name, setName] = useState("")
  const [gigabytes, setGigabytes] = useState("")
  const make = useAsk("POST /v1/workspaces", { renews: [route], isQuiet: true, done: close })
  const send = (): void =>
    make.mutate({ name, ...(gigabytes === "" ? {} : { limitBytes: Math.round(Number(gigabytes) * gibibyte) }) })
  return (
    <FormDialog act="Make it" close={close} isBusy={make.isPending} send={send} title="New workspace">
      <Field
        autoFocus
        name="Name"
        onChange={({ target }) => setName(target.value)}
        pattern="[a-z0-9]([a-z0-9\-]*[a-z0-9])?"
        placeholder="my-project"
        required
        said="Lower-case letters, digits and dashes."
        value={name}
        wrong={make.error?.message}
      />
      <Field
        inputMode="decimal"
        min={0}
        name="At most, in GiB"
        onChange={({ target }) => setGigabytes(target.value)}
        placeholder="as usual"
        step="any"
        type="number"
        value={gigabytes}
      />
    </FormDialog>
  )
}
