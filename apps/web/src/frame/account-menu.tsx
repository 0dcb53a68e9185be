import type { ReactElement } from "react"
import { renewAccount, type Account } from "../data/account.ts"
import { useAsk } from "../data/query.ts"
import { useStore } from "../data/store.ts"
import { Menu, MenuItem } from "../parts/menu.tsx"
import { showKeys } from "./shortcuts.tsx"
import { setTheme, theme, type Theme } from "./theme.ts"

const next: Readonly<Record<Theme, readonly [Theme, string]>> = {
  system: ["dark", "Always dark"],
  dark: ["light", "Always light"],
  light: ["system", "Light or dark as the system"],
}

export function AccountMenu({ account }: { readonly account: Account }): ReactElement {
  const leave = useAsk("POST /v1/login/out", { done: () => void renewAccount() })
  const [other, words] = next[useStore(theme)]
  return (
    <div className="account">
      <span className="cut spread" title={account.user.role}>
        {account.user.name}
      </span>
      <Menu name="Account">
        <MenuItem act={() => setTheme(other)} icon={other === "light" ? "sun" : "moon"}>
          {words}
        </MenuItem>
        <MenuItem act={() => showKeys.set(true)} icon="info">
          Keys
        </MenuItem>
        {account.via === "sign-in" && (
          <MenuItem act={() => leave.mutate({})} icon="out">
            Sign out
          </MenuItem>
        )}
      </Menu>
    </div>
  )
}
