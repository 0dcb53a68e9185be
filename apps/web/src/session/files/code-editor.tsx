import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands"
import {
  bracketMatching,
  defaultHighlightStyle,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from "@codemirror/language"
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search"
import { Annotation, EditorState, type Extension } from "@codemirror/state"
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view"
import { useEffect, useImperativeHandle, useRef, type ReactElement, type Ref } from "react"
import { languageFor } from "./languages.ts"

export interface EditorHandle {
  text(): string
  /** Shows another text in its place; that is no edit. */
  replace(text: string): void
}

interface CodeEditorProps {
  readonly path: string
  readonly text: string
  readonly ref: Ref<EditorHandle>
  edited(): void
  save(): void
}

const isOurs = Annotation.define<boolean>()

/** The colours the editor comes with, as names of ours: they have a dark side, too. */
const colours: Readonly<Record<string, string>> = {
  "#708": "keyword",
  "#219": "value",
  "#164": "value",
  "#a11": "string",
  "#e40": "string",
  "#00f": "name",
  "#30a": "name",
  "#085": "type",
  "#167": "type",
  "#256": "type",
  "#00c": "name",
  "#940": "comment",
  "#404740": "comment",
  "#f00": "wrong",
}

const highlighting = HighlightStyle.define(
  defaultHighlightStyle.specs.map(({ color, ...rest }) =>
    typeof color === "string" ? { ...rest, color: `var(--code-${colours[color] ?? "plain"})` } : rest,
  ),
)

/** A text that can be edited. Ctrl S saves it. */
export function CodeEditor({ path, text, ref, edited, save }: CodeEditorProps): ReactElement {
  const place = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  // What is called changes with each drawing; the editor is made once.
  const calls = useRef({ edited, save })
  useEffect(() => {
    calls.current = { edited, save }
  })
  useEffect(() => {
    if (!place.current) return
    const extensions = extensionsFor(path, {
      edited: () => calls.current.edited(),
      save: () => calls.current.save(),
    })
    const made = new EditorView({ parent: place.current, state: EditorState.create({ doc: text, extensions }) })
    view.current = made
    return () => made.destroy()
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- the text is only where it begins
  }, [path])
  useImperativeHandle(
    ref,
    () => ({
      text: () => view.current?.state.doc.toString() ?? "",
      replace(next) {
        const { current } = view
        if (!current || current.state.doc.toString() === next) return
        const changes = { from: 0, to: current.state.doc.length, insert: next }
        current.dispatch({ changes, annotations: isOurs.of(true) })
      },
    }),
    [],
  )
  return <div className="code-editor" ref={place} />
}

function extensionsFor(path: string, { edited, save }: { edited(): void; save(): void }): Extension[] {
  const saving = {
    key: "Mod-s",
    preventDefault: true,
    run: () => {
      save()
      return true
    },
  }
  return [
    lineNumbers(),
    highlightActiveLineGutter(),
    highlightActiveLine(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    highlightSelectionMatches(),
    syntaxHighlighting(highlighting),
    keymap.of([saving, ...defaultKeymap, ...historyKeymap, ...searchKeymap, indentWithTab]),
    EditorView.contentAttributes.of({ "aria-label": `Text of ${path}` }),
    EditorView.updateListener.of(({ docChanged, transactions }) => {
      if (docChanged && !transactions.some((one) => one.annotation(isOurs))) edited()
    }),
    languageFor(path),
  ]
}
