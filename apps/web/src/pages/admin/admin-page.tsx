import type { ReactElement, ReactNode } from "react"
import { useAccount } from "../../data/account.ts"
import { EmptyState } from "../../parts/empty-state.tsx"
import { Page } from "../page.tsx"
import { SubPlaces } from "../sub-places.tsx"

const places = [
  ["/admin/users", "Users"],
  ["/admin/invites", "Invites"],
  ["/admin/audit", "Audit log"],
] as const

/** For those who manage users: who may come in, how much each may use, and who did what. */
export function AdminPage({ children }: { readonly children: ReactNode }): ReactElement {
  const account = useAccount()
  const isAdmin = account?.user.role === "admin"
  return (
    <Page
      said="Who may come in, how much each may use, and who did what. What users have is not seen here."
      title="Admin"
    >
      {isAdmin ? (
        <>
          <SubPlaces name="Admin" places={places} />
          {children}
        </>
      ) : (
        <EmptyState title="This is for admins">Ask one of them for what you need.</EmptyState>
      )}
    </Page>
  )
}
