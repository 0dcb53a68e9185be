import type { Output } from "@warren/sdk/routes.ts"
import { useState, type FormEvent, type ReactElement } from "react"
import { useCall } from "../data/query.ts"
import { Button } from "../parts/button.tsx"
import { Discard } from "../parts/discard.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Field } from "../parts/field.tsx"
import { Table } from "../parts/table.tsx"
import { bytes, When } from "../parts/when.tsx"
import { useStart } from "../session/use-start.ts"
import { Bringing } from "./images/bringing.tsx"
import { useBringing } from "./images/use-bringing.ts"
import { List, Page } from "./page.tsx"

type Image = Output<"GET /v1/images">["items"][number]

const route = "GET /v1/images"
/** Those whose recipes come with Warren, and what each is for. */
const known = [
  ["base", "Debian with what programs are built with"],
  ["agent", "base, with compilers, Node and coding agents"],
  ["editor", "agent, with VS Code for the browser"],
  ["desktop", "agent, with a screen and a browser"],
] as const

/** What sessions start from. */
export default function Images(): ReactElement {
  const { data, error, refetch } = useCall(route, {})
  const bringing = useBringing()
  const [name, setName] = useState("")
  const pull = (event: FormEvent): void => {
    event.preventDefault()
    bringing.start("POST /v1/images/pull", { name: name.trim() })
  }
  const names = new Set(data?.items.flatMap((image) => image.names))
  const makeable = known.filter(([one]) => ![...names].some((there) => there === one || there.startsWith(`${one}:`)))
  return (
    <Page said="What sessions start from: a tree of files that none of them can change." title="Images">
      <form className="inline-form" onSubmit={pull}>
        <Field
          autoComplete="off"
          name="Bring one from a registry"
          onChange={({ target }) => setName(target.value)}
          placeholder="debian:12, ghcr.io/owner/name:tag"
          required
          spellCheck={false}
          value={name}
        />
        <Button disabled={bringing.isBusy} icon="download" kind="main" type="submit">
          Pull
        </Button>
      </form>
      <Bringing bringing={bringing} />
      <List
        empty={
          <EmptyState title="No images yet">
            Sessions run with this machine's own programs until you pull one above, such as debian:12.
          </EmptyState>
        }
        error={error}
        items={data?.items}
        retry={() => void refetch()}
      >
        {(items) => <ImageTable items={items} />}
      </List>
      {makeable.length > 0 && data && (
        <section className="section">
          <header>
            <h2>Made here</h2>
          </header>
          <p>Recipes that come with Warren. Making one takes minutes and the network.</p>
          <div className="table-room">
            <table className="table">
              <tbody>
                {makeable.map(([one, about]) => (
                  <tr key={one}>
                    <td>{one}</td>
                    <td className="soft">{about}</td>
                    <td className="ends">
                      <Button
                        disabled={bringing.isBusy}
                        onClick={() => bringing.start("POST /v1/images/make", { name: one })}
                        size="small"
                      >
                        Make {one}
                      </Button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
    </Page>
  )
}

function ImageTable({ items }: { readonly items: readonly Image[] }): ReactElement {
  return (
    <div className="table-room">
      <Table hasActions heads={["Name", "Size", { name: "Made", isWide: true }]}>
        {items.map((image) => (
          <ImageRow image={image} key={image.id} />
        ))}
      </Table>
    </div>
  )
}

function ImageRow({ image }: { readonly image: Image }): ReactElement {
  const { id, names, bytes: size, madeAt, isBuiltIn } = image
  const [name = id] = names
  const session = useStart("terminal")
  return (
    <tr>
      <td>
        {names.length === 0 ? <code>{id.slice(0, 19)}</code> : names.join(", ")}{" "}
        {isBuiltIn && <span className="badge">built in</span>}
      </td>
      <td className="soft">{size > 0 ? bytes(size) : "–"}</td>
      <td className="soft wide-only">{isBuiltIn ? "–" : <When at={madeAt} />}</td>
      <td className="ends">
        <Button isBusy={session.isPending} kind="quiet" onClick={() => session.start({ image: name })} size="small">
          Start a session
        </Button>
        {!isBuiltIn && (
          <Discard act="Delete it" input={{ name }} name={`Delete ${name}`} renews={[route]} route="DELETE /v1/images">
            Sessions that started from it go on. It can be brought again from where it came.
          </Discard>
        )}
      </td>
    </tr>
  )
}
