import type { SessionInfo } from "@warren/sdk/session.ts"
import { lazy, type ComponentType } from "react"
import type { IconName } from "../parts/icon.tsx"

/** One of the views beside the conversation. Its code is loaded when it is opened. */
export interface Tab {
  /** In the path: `/s/fix-login-bug/files`. */
  readonly name: string
  readonly title: string
  readonly icon: IconName
  readonly view: ComponentType<TabProps>
}

export interface TabProps {
  readonly session: SessionInfo
}

/** Every view, in the order they are shown. New ones are added here, and nowhere else. */
export const tabs: readonly [Tab, ...Tab[]] = [
  {
    name: "terminal",
    title: "Terminal",
    icon: "terminal",
    view: lazy(() => import("./terminal/terminal-tab.tsx")),
  },
  { name: "preview", title: "Preview", icon: "globe", view: lazy(() => import("./preview/preview-tab.tsx")) },
]
