import { useState, type ReactElement } from "react"
import { Confirm } from "../../parts/confirm.tsx"
import { EmptyState } from "../../parts/empty-state.tsx"
import { Asleep, isAsleep } from "../asleep.tsx"
import type { TabProps } from "../tabs.ts"
import { FileTree } from "./file-tree.tsx"
import { FileView } from "./file-view.tsx"
import { isWithin } from "./paths.ts"
import "../../style/files.css"

/** What is inside, as a tree, and one file of it to read and change. */
export default function FilesTab({ session }: TabProps): ReactElement {
  if (isAsleep(session)) return <Asleep session={session} what="Its files" />
  // Where its programs begin.
  return <Files home={session.workspace ? "/workspace" : "/home/user"} session={session.id} />
}

function Files({ session, home }: { readonly session: string; readonly home: string }): ReactElement {
  const [open, setOpen] = useState<string>()
  const [isDirty, setDirty] = useState(false)
  /** Where one wants to go although something is not saved. */
  const [wanted, want] = useState<string>()
  const go = (path: string | undefined): void => {
    setOpen(path)
    setDirty(false)
    want(undefined)
  }
  const choose = (path: string): void => {
    if (path === open) return
    if (isDirty) want(path)
    else go(path)
  }
  return (
    <div className="files" data-open={open !== undefined || undefined}>
      <FileTree
        changed={(path, to) => open !== undefined && isWithin(path, open) && go(to && to + open.slice(path.length))}
        choose={choose}
        home={home}
        isDirty={isDirty}
        open={open}
        session={session}
      />
      {open === undefined ? (
        <EmptyState title="Choose a file">Or drop files onto a folder to bring them here.</EmptyState>
      ) : (
        <FileView
          close={() => (isDirty ? want("") : go(undefined))}
          isDirty={isDirty}
          key={open}
          path={open}
          session={session}
          setDirty={setDirty}
        />
      )}
      {wanted !== undefined && (
        <Confirm
          act="Leave without saving"
          close={() => want(undefined)}
          title="What you changed is not saved"
          yes={() => go(wanted || undefined)}
        >
          It is lost when you leave this file. Ctrl S saves it.
        </Confirm>
      )}
    </div>
  )
}
