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
  { name: "files", title: "Files", icon: "folder", view: lazy(() => import("./files/files-tab.tsx")) },
  { name: "changes", title: "Changes", icon: "diff", view: lazy(() => import("./changes/changes-tab.tsx")) },
  { name: "compare", title: "Compare", icon: "fork", view: lazy(() => import("./compare/compare-tab.tsx")) },
  { name: "preview", title: "Preview", icon: "globe", view: lazy(() => import("./preview/preview-tab.tsx")) },
  { name: "editor", title: "Editor", icon: "code", view: lazy(() => import("./service/editor-tab.tsx")) },
  { name: "desktop", title: "Desktop", icon: "screen", view: lazy(() => import("./service/desktop-tab.tsx")) },
  { name: "details", title: "Details", icon: "info", view: lazy(() => import("./details/details-tab.tsx")) },
]
