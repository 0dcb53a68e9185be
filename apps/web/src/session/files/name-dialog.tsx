import { useState, type ReactElement } from "react"
import { http } from "../../data/api.ts"
import { queries } from "../../data/query.ts"
import { Fault } from "@warren/base/fault.ts"
import { Field } from "../../parts/field.tsx"
import { FormDialog } from "../../parts/form-dialog.tsx"
import { writeContent } from "./content.ts"
import { inFolder, nameOf, parentOf } from "./paths.ts"

/** Something that needs a name: a new file or folder, or what is to be called otherwise. */
export type Naming =
  | { readonly what: "file" | "folder"; readonly folder: string }
  | { readonly what: "rename"; readonly path: string }

interface NameDialogProps {
  readonly session: string
  readonly naming: Naming
  close(): void
  choose(path: string): void
  changed(path: string, to?: string): void
}

const entriesMax = 5_000
const titles = { file: "New file", folder: "New folder", rename: "Rename" } as const

export function NameDialog({ session, naming, close, choose, changed }: NameDialogProps): ReactElement {
  const folder = naming.what === "rename" ? parentOf(naming.path) : naming.folder
  const [name, setName] = useState(naming.what === "rename" ? nameOf(naming.path) : "")
  const [fault, setFault] = useState<Fault>()
  const [isBusy, busy] = useState(false)
  const send = (): void => {
    busy(true)
    const path = inFolder(folder, name.trim())
    settle(session, naming, path)
      .then(() => {
        void queries.invalidateQueries({ queryKey: ["GET /v1/sessions/{session}/files"] })
        if (naming.what === "rename") changed(naming.path, path)
        if (naming.what === "file") choose(path)
        close()
      })
      .catch((thrown: unknown) => {
        setFault(Fault.from(thrown))
        busy(false)
      })
  }
  return (
    <FormDialog
      act={naming.what === "rename" ? "Rename" : "Make it"}
      close={close}
      isBusy={isBusy}
      send={send}
      title={titles[naming.what]}
    >
      <Field
        autoFocus
        name="Name"
        onChange={({ target }) => setName(target.value)}
        required
        said={`In ${folder}; names joined by / lead into folders.`}
        spellCheck={false}
        value={name}
        wrong={fault?.message}
      />
    </FormDialog>
  )
}

async function settle(session: string, naming: Naming, path: string): Promise<void> {
  if (naming.what === "folder") await http.call("POST /v1/sessions/{session}/files/folders", { session, path })
  else if (naming.what === "rename")
    await http.call("POST /v1/sessions/{session}/files/move", { session, path: naming.path, to: path })
  else if (await isThere(session, naming.folder, path))
    throw new Fault("conflict", `there is a ${nameOf(path)} already`)
  else await writeContent(session, path, "")
}

/** Looked for from the folder that is shown downwards: asking for what is not there would be a failure. */
async function isThere(session: string, from: string, path: string): Promise<boolean> {
  let folder = from
  for (const name of path.slice(from.length).split("/").filter(Boolean)) {
    const input = { session, path: folder, limit: entriesMax }
    const { entries } = await http.call("GET /v1/sessions/{session}/files", input)
    const found = entries.find((entry) => entry.name === name)
    if (!found) return false
    folder = found.path
  }
  return true
}
