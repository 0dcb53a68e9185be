import { useState, type ReactElement } from "react"
import { Button } from "../../parts/button.tsx"
import { Folder } from "./folder.tsx"
import { NameDialog, type Naming } from "./name-dialog.tsx"
import { crumbs } from "./paths.ts"
import { useUpload } from "./use-upload.ts"

interface FileTreeProps {
  readonly session: string
  /** Where it begins. */
  readonly home: string
  readonly open: string | undefined
  readonly isDirty: boolean
  choose(path: string): void
  /** Something was moved to another place, or is gone. */
  changed(path: string, to?: string): void
}

export interface TreeContext {
  readonly session: string
  readonly open: string | undefined
  readonly isDirty: boolean
  choose(path: string): void
  changed(path: string, to?: string): void
  name(naming: Naming): void
  upload(folder: string, files: Iterable<File>): void
}

export function FileTree({ home, ...tree }: FileTreeProps): ReactElement {
  const [root, setRoot] = useState(home)
  const [naming, name] = useState<Naming>()
  const upload = useUpload(tree.session)
  const context: TreeContext = { ...tree, name, upload: upload.send }
  return (
    <nav aria-label="Files" className="file-tree">
      <header>
        <Crumbs choose={setRoot} path={root} />
        <Button
          aria-label="New file"
          icon="plus"
          kind="quiet"
          onClick={() => name({ what: "file", folder: root })}
          size="small"
        />
        <Button
          aria-label="New folder"
          icon="folder"
          kind="quiet"
          onClick={() => name({ what: "folder", folder: root })}
          size="small"
        />
        <UploadButton send={(files) => upload.send(root, files)} />
      </header>
      {upload.now && (
        <p className="file-note" role="status">
          Bringing {upload.now}…
        </p>
      )}
      <div className="file-list">
        <Folder context={context} depth={0} isRoot key={root} path={root} />
      </div>
      {naming && (
        <NameDialog
          changed={tree.changed}
          choose={tree.choose}
          close={() => name(undefined)}
          naming={naming}
          session={tree.session}
        />
      )}
    </nav>
  )
}

function Crumbs({ path, choose }: { readonly path: string; choose(path: string): void }): ReactElement {
  const all = crumbs(path)
  return (
    <span className="crumbs spread">
      {all.map(([one, name]) => (
        <button
          aria-current={one === path ? "true" : undefined}
          key={one}
          onClick={() => choose(one)}
          title={one}
          type="button"
        >
          {name}
        </button>
      ))}
    </span>
  )
}

function UploadButton({ send }: { send(files: Iterable<File>): void }): ReactElement {
  const pick = (): void => {
    const input = document.createElement("input")
    input.type = "file"
    input.multiple = true
    input.addEventListener("change", () => send(input.files ?? []))
    input.click()
  }
  return <Button aria-label="Upload" icon="upload" kind="quiet" onClick={pick} size="small" />
}
