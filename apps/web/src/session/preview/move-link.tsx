import type { MouseEvent, ReactElement, ReactNode } from "react"
import { useAccount } from "../../data/account.ts"
import { http } from "../../data/api.ts"
import { toast } from "../../parts/toast.tsx"

const linkLifeMs = 60_000

/**
 * To this very place under another name of this Warren. A browser keeps its sign-in for one name only: who may make invites takes one
 * along for themselves, others sign in there.
 */
export function MoveLink({
  domain,
  children,
}: {
  readonly domain: string
  readonly children: ReactNode
}): ReactElement {
  const account = useAccount()
  const origin = `${location.protocol}//${domain}${location.port ? `:${location.port}` : ""}`
  const move = (event: MouseEvent): void => {
    if (account?.user.role !== "admin") return
    event.preventDefault()
    const { name, role } = account.user
    http.call("POST /v1/invites", { name, role, lifeMs: linkLifeMs }).then(({ code }) => {
      location.assign(`${origin}/join?next=${encodeURIComponent(location.pathname)}#${code}`)
    }, toast.fault)
  }
  return (
    <a href={origin + location.pathname} onClick={move}>
      {children}
    </a>
  )
}
