import type { Output } from "@warren/sdk/routes.ts"
import { useState, type ReactElement } from "react"
import { useAsk, useCall } from "../../data/query.ts"
import { Dialog } from "../../parts/dialog.tsx"
import { Failure, Waiting } from "../../parts/empty-state.tsx"
import { Field } from "../../parts/field.tsx"
import { DialogForm } from "../../parts/form-dialog.tsx"

interface QuotaDialogProps {
  readonly name: string
  close(): void
}

export function QuotaDialog({ name, close }: QuotaDialogProps): ReactElement {
  const { data, error } = useCall("GET /v1/users/{name}/quota", { name })
  return (
    <Dialog close={close} title={`How much ${name} may use`}>
      {error && <Failure fault={error} />}
      {data ? <QuotaForm close={close} name={name} quota={data} /> : !error && <Waiting>Reading…</Waiting>}
    </Dialog>
  )
}

interface QuotaFormProps extends QuotaDialogProps {
  readonly quota: Output<"GET /v1/users/{name}/quota">
}

function QuotaForm({ name, quota, close }: QuotaFormProps): ReactElement {
  const [sessionsMax, setSessions] = useState(String(quota.sessionsMax))
  const [requestsPerMinute, setRequests] = useState(String(quota.requestsPerMinute))
  const set = useAsk("PUT /v1/users/{name}/quota", {
    renews: ["GET /v1/users/{name}/quota"],
    isQuiet: true,
    done: close,
  })
  const send = (): void =>
    set.mutate({ name, sessionsMax: Number(sessionsMax), requestsPerMinute: Number(requestsPerMinute) })
  return (
    <DialogForm act="Set quota" close={close} isBusy={set.isPending} send={send}>
      <Field
        autoFocus
        max={100_000}
        min={0}
        name="Sessions"
        onChange={({ target }) => setSessions(target.value)}
        required
        said="That are not over."
        type="number"
        value={sessionsMax}
        wrong={set.error?.message}
      />
      <Field
        max={1_000_000}
        min={1}
        name="Requests per minute"
        onChange={({ target }) => setRequests(target.value)}
        required
        type="number"
        value={requestsPerMinute}
      />
    </DialogForm>
  )
}
