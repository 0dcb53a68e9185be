import type { ReactElement } from "react"
import { SelectField, TextField } from "../../parts/field.tsx"
import type { NetworkWish } from "./wishes.ts"

const modes: readonly (readonly [NetworkWish["mode"], string, string])[] = [
  ["usual", "Only what it needs", "Nothing but the repository's host and the keys it was lent."],
  ["none", "None", "Not even a proxy: nothing leaves."],
  ["list", "These hosts", "Through the proxy, and what was refused is written down."],
  ["all-public", "Every public host", "Through the proxy, on the ports 80 and 443; nothing private."],
  ["bridge", "A network of its own", "Every public address and port, without a proxy."],
  ["host", "The machine's network", "Whatever this machine reaches. This is no isolation."],
]

interface NetworkFieldProps {
  readonly network: NetworkWish
  set(network: NetworkWish): void
}

export function NetworkField({ network, set }: NetworkFieldProps): ReactElement {
  return (
    <>
      <SelectField
        name="It may reach"
        onChange={({ target }) => set({ ...network, mode: target.value as NetworkWish["mode"] })}
        said={modes.find(([mode]) => mode === network.mode)?.[2]}
        value={network.mode}
      >
        {modes.map(([mode, name]) => (
          <option key={mode} value={mode}>
            {name}
          </option>
        ))}
      </SelectField>
      {network.mode === "list" && (
        <TextField
          name="Hosts"
          onChange={({ target }) => set({ ...network, allow: target.value })}
          placeholder={"github.com\n*.npmjs.org"}
          rows={3}
          value={network.allow}
        />
      )}
    </>
  )
}
