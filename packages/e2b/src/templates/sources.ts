import { Fault } from "@warren/base/fault.ts"
import { isId } from "@warren/base/id.ts"
import type { Plane, Snapshot, Wishes } from "../plane.ts"
import { snapshotName, templateName } from "./template-name.ts"

/** What a sandbox starts from. */
export interface Source {
  readonly origin: Pick<Wishes, "image" | "from">
  /** It was built here, and says inside what it needs. */
  readonly isTemplate: boolean
}

/** Names their clients use unasked: the machine's own image stands in where nobody has built one of that name. */
const usual = new Set(["base", "code-interpreter-v1", "desktop", "mcp-gateway"])
const snapshotsMax = 10_000

/** A template, a snapshot or an image, by whatever name it is asked for. */
export async function sourceOf(plane: Plane, asked: string): Promise<Source> {
  const plain = asked.replace(/:default$/, "")
  if (isId("snp", plain)) return { origin: { from: plain }, isTemplate: false }
  const { items: images } = await plane.call("image.list", {})
  if (images.some(({ names }) => names.includes(asked))) return { origin: { image: asked }, isTemplate: false }
  const snapshots = await allSnapshots(plane)
  const wanted = wantedName(asked)
  const template = snapshots.find(({ name }) => wanted !== undefined && name === wanted)
  if (template) return { origin: { from: template.id }, isTemplate: true }
  const named = snapshots.find(({ name }) => name === plain.split("/").at(-1))
  if (named) return { origin: { from: named.id }, isTemplate: false }
  if (usual.has(plain)) return { origin: {}, isTemplate: false }
  throw new Fault("not_found", `template '${asked}' not found`)
}

function wantedName(asked: string): string | undefined {
  try {
    return snapshotName(templateName(asked))
  } catch {
    return undefined
  }
}

/** The newest first. */
export async function allSnapshots(plane: Plane, session?: string): Promise<Snapshot[]> {
  const found: Snapshot[] = []
  for (
    let cursor: string | undefined, isFirst = true;
    (isFirst || cursor) && found.length < snapshotsMax;
    isFirst = false
  ) {
    const page = await plane.call("snapshot.list", {
      limit: 200,
      ...(cursor ? { cursor } : {}),
      ...(session === undefined ? {} : { session }),
    })
    found.push(...page.items.filter(({ isAutomatic }) => !isAutomatic))
    cursor = page.nextCursor
  }
  return found
}
