import { useState, type FormEvent, type ReactElement } from "react"
import { useCall } from "../data/query.ts"
import { Button } from "../parts/button.tsx"
import { Field, SelectField, TextField } from "../parts/field.tsx"
import { Icon } from "../parts/icon.tsx"
import { AgentFields } from "../session/agent-fields.tsx"
import { keysFor } from "../session/agent-wishes.ts"
import { useStart } from "../session/use-start.ts"
import { LimitFields } from "./new-session/limit-fields.tsx"
import { NetworkField } from "./new-session/network-field.tsx"
import { useNewSession } from "./new-session/use-new-session.ts"
import { noWishes, type Wishes } from "./new-session/wishes.ts"
import "../style/form.css"

/** Everything a session can be asked to be; nothing of it has to be said. */
export default function NewSession(): ReactElement {
  const sandbox = useStart("terminal")
  return (
    <main className="main">
      <div className="page">
        <div className="page-inner">
          <div className="page-head">
            <div className="spread">
              <h1>New session</h1>
              <p>Everything has a sensible default: say what you want done, and start.</p>
            </div>
            <Button icon="terminal" isBusy={sandbox.isPending} onClick={() => sandbox.start()}>
              Empty sandbox
            </Button>
          </div>
          <WishForm />
        </div>
      </div>
    </main>
  )
}

function WishForm(): ReactElement {
  const [wishes, setWishes] = useState<Wishes>(noWishes)
  const secrets = useCall("GET /v1/secrets", { limit: 200 })
  const names = secrets.data?.items.map(({ name }) => name) ?? []
  const make = useNewSession(names)
  const set = (changes: Partial<Wishes>): void => setWishes({ ...wishes, ...changes })
  const send = (event: FormEvent): void => {
    event.preventDefault()
    make.start(wishes)
  }
  return (
    <form className="form" onSubmit={send}>
      <WorkFields secrets={secrets.data ? names : undefined} set={set} wishes={wishes} />
      <details>
        <summary>
          <Icon name="chevron" size={12} /> The machine: image, network, limits
        </summary>
        <MachineFields set={set} wishes={wishes} />
      </details>
      {make.fault && (
        <p className="message-fault" role="alert">
          {make.fault.message}
          {make.fault.hint && ` – ${make.fault.hint}`}
        </p>
      )}
      <div className="row">
        <Button isBusy={make.step !== undefined} kind="main" type="submit">
          {make.step ?? (wishes.agent === "none" ? "Start the sandbox" : "Start the agent")}
        </Button>
      </div>
    </form>
  )
}

interface FieldsProps {
  readonly wishes: Wishes
  set(changes: Partial<Wishes>): void
}

function WorkFields({
  wishes,
  set,
  secrets,
}: FieldsProps & { readonly secrets: readonly string[] | undefined }): ReactElement {
  const { agent, repo } = wishes
  const keys = keysFor(agent, "", secrets ?? [])
  const isKeyless = secrets !== undefined && agent !== "none" && agent !== "scripted" && keys.length === 0
  return (
    <>
      {agent !== "none" && (
        <TextField
          autoFocus
          name="What shall it do?"
          onChange={({ target }) => set({ prompt: target.value })}
          placeholder="Make the login test pass"
          rows={3}
          value={wishes.prompt}
        />
      )}
      <AgentFields keys={keys} set={set} wish={wishes} />
      {isKeyless && (
        <p className="notice">
          <Icon name="warning" size={14} /> No key for a model is set yet: add the secret ANTHROPIC_API_KEY or
          OPENAI_API_KEY. The demo agent needs none.
        </p>
      )}
      {agent !== "none" && (
        <div className="columns">
          <Field
            name="Repository"
            onChange={({ target }) => set({ repo: target.value })}
            placeholder="owner/name, or an address"
            said="It is cloned before the agent begins; empty for none."
            value={repo}
          />
          <Field
            disabled={repo === ""}
            name="Branch"
            onChange={({ target }) => set({ branch: target.value })}
            placeholder="the usual one"
            said="The remote's if it has it, otherwise a new one."
            value={wishes.branch}
          />
        </div>
      )}
    </>
  )
}

function MachineFields({ wishes, set }: FieldsProps): ReactElement {
  const images = useCall("GET /v1/images", {})
  const workspaces = useCall("GET /v1/workspaces", { limit: 200 })
  return (
    <div className="stack">
      <div className="columns">
        <Field
          name="Name"
          onChange={({ target }) => set({ name: target.value })}
          pattern="[a-z0-9]([a-z0-9\-]*[a-z0-9])?"
          placeholder="one is made up"
          said="Lower-case letters, digits and dashes."
          value={wishes.name}
        />
        <SelectField
          name="Image"
          onChange={({ target }) => set({ image: target.value })}
          said="What it starts from."
          value={wishes.image}
        >
          <option value="">This machine's own programs</option>
          {images.data?.items.map(({ id, names: [name = id] }) => (
            <option key={id}>{name}</option>
          ))}
        </SelectField>
        <SelectField
          name="Driver"
          onChange={({ target }) => set({ driver: target.value as Wishes["driver"] })}
          value={wishes.driver}
        >
          <option value="">As usual</option>
          <option value="oci">oci: a sandbox of its own</option>
          <option value="process">process: for development only</option>
        </SelectField>
        <Field
          list="workspaces"
          name="Workspace"
          onChange={({ target }) => set({ workspace: target.value })}
          placeholder="none"
          said="A folder that outlives the session, at /workspace."
          value={wishes.workspace}
        />
        <datalist id="workspaces">
          {workspaces.data?.items.map(({ name }) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </div>
      <NetworkField network={wishes.network} set={(network) => set({ network })} />
      <LimitFields limits={wishes.limits} set={(limits) => set({ limits })} />
      <SelectField
        name="When nothing happens"
        onChange={({ target }) => set({ idleMinutes: target.value })}
        value={wishes.idleMinutes}
      >
        <option value="">it stays awake</option>
        <option value="15">it sleeps after 15 minutes</option>
        <option value="60">it sleeps after an hour</option>
        <option value="480">it sleeps after 8 hours</option>
      </SelectField>
    </div>
  )
}
