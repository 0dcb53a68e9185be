import type { Output } from "@warren/sdk/routes.ts"
import { useState, type DragEvent, type ReactElement } from "react"
import { useCall } from "../../data/query.ts"
import { Icon } from "../../parts/icon.tsx"
import { FileMenu } from "./file-menu.tsx"
import type { TreeContext } from "./file-tree.tsx"

type Entry = Output<"GET /v1/sessions/{session}/files">["entries"][number]

const entriesMax = 1_000
/** An agent may write at any time. */
const lookEveryMs = 4_000
const stepPx = 12

interface FolderProps {
  readonly context: TreeContext
  readonly path: string
  readonly depth: number
  readonly isRoot?: boolean
}

/** What is in a folder; read when it is opened, and again while it is. */
export function Folder({ context, path, depth, isRoot = false }: FolderProps): ReactElement {
  const { data, error } = useCall(
    "GET /v1/sessions/{session}/files",
    { session: context.session, path, limit: entriesMax },
    { everyMs: lookEveryMs },
  )
  const drop = useDrop((files) => context.upload(path, files))
  const entries = data?.entries.toSorted(byKindAndName)
  const indent = { paddingLeft: 8 + depth * stepPx + 20 }
  return (
    <div className="folder" data-root={isRoot || undefined} {...drop}>
      {error && (
        <p className="file-note" style={indent}>
          {error.message}
        </p>
      )}
      {entries?.length === 0 && (
        <p className="file-note" style={isRoot ? undefined : indent}>
          {isRoot ? "Nothing here yet. Drop files to bring them in." : "empty"}
        </p>
      )}
      {entries?.map((entry) => (
        <Line context={context} depth={depth} entry={entry} key={entry.name} />
      ))}
      {data?.truncated && (
        <p className="file-note" style={indent}>
          Only the first {entriesMax} are shown.
        </p>
      )}
    </div>
  )
}

interface LineProps {
  readonly context: TreeContext
  readonly entry: Entry
  readonly depth: number
}

function Line({ context, entry, depth }: LineProps): ReactElement {
  const { name, path, type } = entry
  const [isOpen, setOpen] = useState(false)
  const isFolder = type === "dir"
  const isChosen = context.open === path
  return (
    <>
      <div className="file-line" data-chosen={isChosen || undefined}>
        <button
          aria-current={isChosen ? "true" : undefined}
          aria-expanded={isFolder ? isOpen : undefined}
          disabled={!isFolder && type !== "file" && type !== "symlink"}
          onClick={() => (isFolder ? setOpen(!isOpen) : context.choose(path))}
          style={{ paddingLeft: 8 + depth * stepPx }}
          type="button"
        >
          <span className="turn" data-open={isOpen || undefined}>
            {isFolder && <Icon name="chevron" size={10} />}
          </span>
          <Icon name={isFolder ? "folder" : type === "symlink" ? "link" : "file"} size={14} />
          <span className="cut">{name}</span>
          {isChosen && context.isDirty && <span aria-label="not saved" className="unsaved" role="img" />}
        </button>
        <FileMenu context={context} entry={entry} />
      </div>
      {isOpen && <Folder context={context} depth={depth + 1} path={path} />}
    </>
  )
}

function byKindAndName(a: Entry, b: Entry): number {
  const [x, y] = [a.type === "dir" ? 0 : 1, b.type === "dir" ? 0 : 1]
  return x - y || a.name.localeCompare(b.name)
}

/** Files that are let go over it are sent into it, not into the folder around it. */
function useDrop(send: (files: Iterable<File>) => void) {
  const [isOver, over] = useState(false)
  return {
    "data-over": isOver || undefined,
    onDragOver(event: DragEvent): void {
      if (!event.dataTransfer.types.includes("Files")) return
      event.preventDefault()
      event.stopPropagation()
      over(true)
    },
    onDragLeave: () => over(false),
    onDrop(event: DragEvent): void {
      event.preventDefault()
      event.stopPropagation()
      over(false)
      send(event.dataTransfer.files)
    },
  }
}
