import type { Output } from "@warren/sdk/routes.ts"
import { useDeferredValue, useState, type ReactElement } from "react"
import { usePages } from "../data/pages.ts"
import { useAsk, useCall } from "../data/query.ts"
import { Button } from "../parts/button.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Field, TextField } from "../parts/field.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { When } from "../parts/when.tsx"
import { List, More, Page } from "./page.tsx"

type Memory = Output<"GET /v1/memories">["items"][number]

const routes = ["GET /v1/memories", "GET /v1/memories/search"] as const

/** What agents and people have noted, to be found again. */
export default function Memories(): ReactElement {
  const [words, setWords] = useState("")
  const [isAdding, add] = useState(false)
  const query = useDeferredValue(words.trim())
  const pages = usePages(routes[0], {})
  const found = useCall(routes[1], { query: query || "-" }, { isOn: query !== "" })
  const button = (
    <Button icon="plus" kind="main" onClick={() => add(true)}>
      Remember something
    </Button>
  )
  const isEmpty = pages.items?.length === 0
  return (
    <Page
      action={isEmpty ? undefined : button}
      said="What agents learn in one session and should know in the next. They search it by themselves; so can you."
      title="Memories"
    >
      {!isEmpty && (
        <input
          aria-label="Search memories"
          className="input"
          onChange={({ target }) => setWords(target.value)}
          placeholder="Search by words or by meaning"
          type="search"
          value={words}
        />
      )}
      {query === "" ? (
        <>
          <List
            {...pages}
            empty={
              <EmptyState action={button} title="Nothing is remembered yet">
                Note how a project is built or what you prefer, and every agent can find it.
              </EmptyState>
            }
          >
            {(items) => items.map((memory) => <MemoryLine key={memory.id} memory={memory} />)}
          </List>
          <More pages={pages} />
        </>
      ) : (
        <Found found={found} query={query} />
      )}
      {isAdding && <MemoryDialog close={() => add(false)} />}
    </Page>
  )
}

interface FoundProps {
  readonly query: string
  readonly found: ReturnType<typeof useCall<"GET /v1/memories/search">>
}

function Found({ query, found }: FoundProps): ReactElement {
  const { data, error, refetch } = found
  return (
    <div>
      {data?.degraded && <p className="small soft">Found by words only: {data.degraded.detail}</p>}
      <List
        empty={<EmptyState title={`Nothing is remembered about “${query}”`}>Try fewer or other words.</EmptyState>}
        error={error}
        items={data?.items}
        retry={() => void refetch()}
      >
        {(items) => items.map(({ memory }) => <MemoryLine key={memory.id} memory={memory} />)}
      </List>
    </div>
  )
}

function MemoryLine({ memory }: { readonly memory: Memory }): ReactElement {
  const remove = useAsk("DELETE /v1/memories/{id}", { renews: routes })
  const { id, text, tags, source, createdAt } = memory
  return (
    <article className="memory">
      <div className="spread">
        <p>{text}</p>
        <div className="tags">
          {tags.map((tag) => (
            <span className="badge" key={tag}>
              {tag}
            </span>
          ))}
          <span className="soft tiny">
            <When at={createdAt} />
            {source && ` · from ${source}`}
          </span>
        </div>
      </div>
      <Button
        aria-label="Forget this"
        icon="trash"
        isBusy={remove.isPending}
        kind="quiet"
        onClick={() => remove.mutate({ id })}
        size="small"
      />
    </article>
  )
}

function MemoryDialog({ close }: { close(): void }): ReactElement {
  const [text, setText] = useState("")
  const [tags, setTags] = useState("")
  const add = useAsk("POST /v1/memories", { renews: routes, isQuiet: true, done: close })
  const send = (): void => add.mutate({ text, tags: tags.split(/[\s,]+/).filter(Boolean), source: "the page" })
  return (
    <FormDialog act="Remember it" close={close} isBusy={add.isPending} send={send} title="Remember something">
      <TextField
        autoFocus
        name="Text"
        onChange={({ target }) => setText(target.value)}
        placeholder="The tests of this project are run with npm test -- path"
        required
        rows={4}
        value={text}
        wrong={add.error?.message}
      />
      <Field
        name="Tags"
        onChange={({ target }) => setTags(target.value)}
        placeholder="project:warren tests"
        said="Words to find it by; none are needed."
        value={tags}
      />
    </FormDialog>
  )
}
