import { useCallback, useState } from "react"
import { queries } from "../../data/query.ts"
import { toast } from "../../parts/toast.tsx"
import { writeContent } from "./content.ts"
import { inFolder } from "./paths.ts"

interface Upload {
  /** What is on its way. */
  readonly now: string | undefined
  send(folder: string, files: Iterable<File>): void
}

/** Brings files in, one after the other. */
export function useUpload(session: string): Upload {
  const [now, setNow] = useState<string>()
  const send = useCallback(
    (folder: string, files: Iterable<File>) => {
      bring(session, folder, [...files], setNow).catch(toast.fault)
    },
    [session],
  )
  return { now, send }
}

async function bring(
  session: string,
  folder: string,
  files: readonly File[],
  note: (name: string | undefined) => void,
): Promise<void> {
  try {
    for (const file of files) {
      note(file.name)
      await writeContent(session, inFolder(folder, file.name), file)
    }
    const [first] = files
    if (first) toast.say(files.length === 1 ? `${first.name} is there` : `${files.length} files are there`)
  } finally {
    note(undefined)
    void queries.invalidateQueries({ queryKey: ["GET /v1/sessions/{session}/files"] })
  }
}
