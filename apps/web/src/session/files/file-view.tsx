import { useCallback, useEffect, useRef, useState, type ReactElement } from "react"
import { useCall } from "../../data/query.ts"
import { Button } from "../../parts/button.tsx"
import { EmptyState, Failure, Waiting } from "../../parts/empty-state.tsx"
import { toast } from "../../parts/toast.tsx"
import { bytes } from "../../parts/when.tsx"
import { CodeEditor, type EditorHandle } from "./code-editor.tsx"
import { download, readContent, writeContent, type Content } from "./content.ts"
import { nameOf, parentOf } from "./paths.ts"

interface FileViewProps {
  readonly session: string
  readonly path: string
  readonly isDirty: boolean
  setDirty(isDirty: boolean): void
  close(): void
}

const lookEveryMs = 3_000

/** One file: to be read, and changed where it is text. What somebody else writes meanwhile is shown, or told of. */
export function FileView({ session, path, isDirty, setDirty, close }: FileViewProps): ReactElement {
  const input = { session, path }
  const stat = useCall("GET /v1/sessions/{session}/files/stat", input, { everyMs: lookEveryMs })
  const [content, setContent] = useState<Content>()
  const [fault, setFault] = useState<unknown>()
  const [isSaving, saving] = useState(false)
  const editor = useRef<EditorHandle>(null)
  /** When what is shown was written; what is newer is somebody else's. */
  const [shownAt, setShownAt] = useState<number>()
  const { data, error, refetch } = stat
  const load = useCallback(
    (size: number, at: number, signal: AbortSignal) => {
      readContent(session, path, size, signal).then(
        (read) => {
          if (signal.aborted) return
          setContent(read)
          setShownAt(at)
          setDirty(false)
          if (read.kind === "text") editor.current?.replace(read.text)
        },
        (thrown: unknown) => signal.aborted || setFault(thrown),
      )
    },
    [session, path, setDirty],
  )
  const isNewer = data !== undefined && data.mtimeMs !== shownAt
  useEffect(() => {
    if (!data || !isNewer || isDirty || isSaving) return
    const leave = new AbortController()
    load(data.size, data.mtimeMs, leave.signal)
    return () => leave.abort()
  }, [data, isNewer, isDirty, isSaving, load])
  const save = async (): Promise<void> => {
    if (!editor.current || isSaving) return
    const text = editor.current.text()
    saving(true)
    try {
      await writeContent(session, path, text)
      const { data: after } = await refetch()
      setShownAt(after?.mtimeMs)
      setDirty(editor.current?.text() !== text)
    } catch (thrown) {
      toast.fault(thrown)
    } finally {
      saving(false)
    }
  }
  if (fault ?? error) return <Failure fault={fault ?? error} retry={close} />
  return (
    <section aria-label={path} className="file-view">
      <header>
        <Button
          aria-label="Close the file"
          className="narrow-only"
          icon="close"
          kind="quiet"
          onClick={close}
          size="small"
        />
        <span className="cut mono small spread" title={path}>
          {nameOf(path)} <span className="soft tiny">{parentOf(path)}</span>
        </span>
        {isDirty && isNewer && shownAt !== undefined && !isSaving && (
          <span className="badge" data-kind="warn">
            changed inside too
          </span>
        )}
        {data && <span className="soft tiny">{bytes(data.size)}</span>}
        <Button
          aria-label="Download"
          icon="download"
          kind="quiet"
          onClick={() => void download(session, path).catch(toast.fault)}
          size="small"
        />
        {content?.kind === "text" && (
          <Button
            disabled={!isDirty}
            isBusy={isSaving}
            kind={isDirty ? "main" : "plain"}
            onClick={() => void save()}
            size="small"
          >
            {isDirty ? "Save" : "Saved"}
          </Button>
        )}
      </header>
      {content ? (
        <Shown content={content} edited={() => setDirty(true)} editor={editor} path={path} save={() => void save()} />
      ) : (
        <Waiting>Reading…</Waiting>
      )}
    </section>
  )
}

interface ShownProps {
  readonly content: Content
  readonly path: string
  readonly editor: React.Ref<EditorHandle>
  edited(): void
  save(): void
}

function Shown({ content, path, editor, edited, save }: ShownProps): ReactElement {
  if (content.kind === "text")
    return <CodeEditor edited={edited} path={path} ref={editor} save={save} text={content.text} />
  if (content.kind === "picture") return <Picture blob={content.blob} path={path} />
  return (
    <EmptyState title="Not a text">
      It is too long for an editor, or no text at all. Download it to look at it.
    </EmptyState>
  )
}

function Picture({ blob, path }: { readonly blob: Blob; readonly path: string }): ReactElement {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    const made = URL.createObjectURL(blob)
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [blob])
  return <div className="picture">{url && <img alt={path} src={url} />}</div>
}
