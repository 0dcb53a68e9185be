import type { Fault } from "@warren/base/fault.ts"
import type { Output } from "@warren/sdk/routes.ts"
import { useQuery } from "@tanstack/react-query"
import type { ReactElement } from "react"
import { Failure, Waiting } from "../../parts/empty-state.tsx"
import { Diff } from "../chat/diff.tsx"
import { lineDiff } from "../chat/line-diff.ts"
import { readContent } from "../files/content.ts"

interface FileDifferenceProps {
  readonly session: string
  readonly other: string
  readonly folder: string
  readonly file: Output<"GET /v1/sessions/{id}/compare/{other}">["files"][number]
}

/** Beyond this a diff is too long to be read. */
const comparedBytesMax = 256 * 1024

/** One file of two sessions, line by line. Both are read by the page: neither session sees the other's. */
export function FileDifference({ session, other, folder, file }: FileDifferenceProps): ReactElement {
  const { path, sizeHere, sizeThere } = file
  const { data, error, refetch } = useQuery<readonly (string | undefined)[], Fault>({
    queryKey: ["compared", session, other, folder, file],
    queryFn: ({ signal }) => Promise.all([textOf(session, sizeHere, signal), textOf(other, sizeThere, signal)]),
  })
  async function textOf(where: string, size: number | undefined, signal: AbortSignal): Promise<string | undefined> {
    if (size === undefined) return ""
    if (size > comparedBytesMax) return undefined
    const content = await readContent(where, `${folder === "/" ? "" : folder}/${path}`, size, signal)
    return content.kind === "text" ? content.text : undefined
  }
  if (!data) return error ? <Failure fault={error} retry={() => void refetch()} /> : <Waiting>Comparing…</Waiting>
  const [here, there] = data
  if (here === undefined || there === undefined)
    return <p className="soft small">No lines to compare: it is long, or no text.</p>
  return <Diff lines={lineDiff(here, there)} />
}
