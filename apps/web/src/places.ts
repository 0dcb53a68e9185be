import { lazy, type ComponentType } from "react"
import type { IconName } from "./parts/icon.tsx"

/** A page of the frame. Its code is loaded when it is opened. */
export interface Place {
  /** A path as wouter writes it. What it names is handed to the page as `params`. */
  readonly path: string
  readonly title: string
  readonly page: ComponentType
  /** In the sidebar and in the palette, if it has an icon. */
  readonly icon?: IconName
  /** Without the user's runner there is nothing to show. */
  readonly needsRunner?: boolean
  /** Only for those who manage users. */
  readonly isForAdmins?: boolean
}

/** What a runner keeps. */
const ofRunner: readonly Place[] = [
  { path: "/", title: "Warren", page: lazy(() => import("./pages/home.tsx")) },
  { path: "/new", title: "New session", page: lazy(() => import("./pages/new-session.tsx")) },
  { path: "/images", title: "Images", icon: "image", page: lazy(() => import("./pages/images.tsx")) },
  { path: "/workspaces", title: "Workspaces", icon: "box", page: lazy(() => import("./pages/workspaces.tsx")) },
  { path: "/secrets", title: "Secrets", icon: "key", page: lazy(() => import("./pages/secrets.tsx")) },
  { path: "/memories", title: "Memories", icon: "brain", page: lazy(() => import("./pages/memories.tsx")) },
]

/** What Warren itself knows: it is shown while there is no runner, too. */
const ofWarren: readonly Place[] = [
  { path: "/settings", title: "Settings", icon: "gear", page: lazy(() => import("./pages/settings/account.tsx")) },
  { path: "/settings/account", title: "Account", page: lazy(() => import("./pages/settings/account.tsx")) },
  { path: "/settings/tokens", title: "Tokens", page: lazy(() => import("./pages/settings/tokens.tsx")) },
  {
    ...{ path: "/admin", title: "Admin", icon: "people", isForAdmins: true },
    page: lazy(() => import("./pages/admin/users.tsx")),
  },
  { path: "/admin/users", title: "Users", page: lazy(() => import("./pages/admin/users.tsx")) },
  { path: "/admin/invites", title: "Invites", page: lazy(() => import("./pages/admin/invites.tsx")) },
  { path: "/admin/audit", title: "Audit log", page: lazy(() => import("./pages/admin/audit.tsx")) },
]

/** Every page but those of a session. New ones are added above, and nowhere else. */
export const places: readonly Place[] = [...ofRunner.map((place) => ({ ...place, needsRunner: true })), ...ofWarren]
