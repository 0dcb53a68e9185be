import { defaultScopes, tokenScopes, type TokenScope } from "@warren/protocol/token-scope.ts"
import type { Input, Output } from "@warren/sdk/routes.ts"
import { useState, type FormEvent, type ReactElement } from "react"
import { useAccount } from "../../data/account.ts"
import { useAsk } from "../../data/query.ts"
import { Button } from "../../parts/button.tsx"
import { Choices } from "../../parts/choices.tsx"
import { Dialog } from "../../parts/dialog.tsx"
import { Field, SelectField } from "../../parts/field.tsx"
import { Icon } from "../../parts/icon.tsx"
import "../../style/form.css"

export type Made = Output<"POST /v1/tokens"> & { readonly form: "warren" | "e2b" }

const dayMs = 24 * 3600_000
const looking: readonly TokenScope[] = defaultScopes.filter((scope) => scope.endsWith(":read"))
const presets = { usual: defaultScopes, looking } as const

interface Wishes {
  readonly label: string
  readonly form: "warren" | "e2b"
  readonly may: "usual" | "looking" | "chosen"
  readonly scopes: readonly TokenScope[]
  readonly days: string
  readonly namePrefix: string
  readonly sessionsMax: string
}

const nothing: Wishes = {
  ...{ label: "", form: "warren", may: "usual", scopes: defaultScopes, days: "90" },
  ...{ namePrefix: "", sessionsMax: "" },
}

/** What a new token is for, and how little it may do. */
export function TokenDialog({ close, made }: { close(): void; made(token: Made): void }): ReactElement {
  const [wishes, setWishes] = useState<Wishes>(nothing)
  const set = (changes: Partial<Wishes>): void => setWishes({ ...wishes, ...changes })
  const make = useAsk("POST /v1/tokens", {
    renews: ["GET /v1/tokens"],
    isQuiet: true,
    done: (out) => made({ ...out, form: wishes.form }),
  })
  const send = (event: FormEvent): void => {
    event.preventDefault()
    make.mutate(asked(wishes))
  }
  return (
    <Dialog className="wide" close={close} title="New token">
      <form className="form" onSubmit={send}>
        <div className="columns">
          <Field
            autoFocus
            name="Name"
            onChange={({ target }) => set({ label: target.value })}
            pattern="[a-z0-9]([a-z0-9._\-]*[a-z0-9])?"
            placeholder="ci"
            required
            said="Lower-case letters and digits: what it is for."
            value={wishes.label}
            wrong={make.error?.message}
          />
          <SelectField name="Ends" onChange={({ target }) => set({ days: target.value })} value={wishes.days}>
            <option value="1">after a day</option>
            <option value="30">after 30 days</option>
            <option value="90">after 90 days</option>
            <option value="365">after a year</option>
            <option value="">never</option>
          </SelectField>
        </div>
        <Choices
          choose={(form) => set({ form })}
          name="For whom"
          options={[
            ["warren", "For the SDK, curl and MCP"],
            ["e2b", "For clients of E2B"],
          ]}
          value={wishes.form}
        />
        <Scopes set={set} wishes={wishes} />
        <details>
          <summary>
            <Icon name="chevron" size={12} /> Narrower still
          </summary>
          <div className="columns">
            <Field
              name="Only sessions that begin with"
              onChange={({ target }) => set({ namePrefix: target.value })}
              pattern="[a-z0-9][a-z0-9\-]*"
              placeholder="any"
              value={wishes.namePrefix}
            />
            <Field
              min={0}
              name="At most this many sessions"
              onChange={({ target }) => set({ sessionsMax: target.value })}
              placeholder="as many as you"
              type="number"
              value={wishes.sessionsMax}
            />
          </div>
        </details>
        <div className="ends">
          <Button onClick={close}>Not now</Button>
          <Button isBusy={make.isPending} kind="main" type="submit">
            Make token
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function Scopes({
  wishes: { may, scopes },
  set,
}: {
  readonly wishes: Wishes
  set(changes: Partial<Wishes>): void
}): ReactElement {
  const account = useAccount()
  const known = Object.keys(tokenScopes) as TokenScope[]
  const toggle = (scope: TokenScope): void =>
    set({ scopes: scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope] })
  return (
    <div className="field">
      <span className="field-name">It may</span>
      <Choices
        choose={(chosen) => set({ may: chosen, ...(chosen === "chosen" ? {} : { scopes: presets[chosen] }) })}
        name="It may"
        options={[
          ["usual", "Everything but accounts"],
          ["looking", "Only look"],
          ["chosen", "Choose…"],
        ]}
        value={may}
      />
      {may === "chosen" && (
        <div className="scopes">
          {known
            .filter((scope) => account?.scopes.includes(scope))
            .map((scope) => (
              <label className="check" key={scope} title={tokenScopes[scope]}>
                <input checked={scopes.includes(scope)} onChange={() => toggle(scope)} type="checkbox" />
                {scope}
              </label>
            ))}
        </div>
      )}
    </div>
  )
}

function asked({ label, form, scopes, days, namePrefix, sessionsMax }: Wishes): Input<"POST /v1/tokens"> {
  return {
    ...{ label, form, scopes: [...scopes] },
    ...(days === "" ? {} : { lifeMs: Number(days) * dayMs }),
    limits: {
      ...(namePrefix === "" ? {} : { namePrefix }),
      ...(sessionsMax === "" ? {} : { sessionsMax: Number(sessionsMax) }),
    },
  }
}
