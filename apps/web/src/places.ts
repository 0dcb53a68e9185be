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
  /** Only for those who manage users. */
  readonly isForAdmins?: boolean
}

/** Every page but those of a session. New ones are added here, and nowhere else. */
export const places: readonly Place[] = [
  { path: "/", title: "Warren", page: lazy(() => import("./pages/home.tsx")) },
  { path: "/new", title: "New session", page: lazy(() => import("./pages/new-session.tsx")) },
]
