import type { ReactElement, ReactNode } from "react"
import { SubPlaces } from "../sub-places.tsx"
import { Page } from "../page.tsx"

const places = [
  ["/settings/account", "Account"],
  ["/settings/tokens", "Tokens"],
] as const

export function SettingsPage({ children }: { readonly children: ReactNode }): ReactElement {
  return (
    <Page said="Who you are here, and what programs may do in your name." title="Settings">
      <SubPlaces name="Settings" places={places} />
      {children}
    </Page>
  )
}
