import { comparedFilesMax, type ComparedFile } from "@warren/protocol/user-plane/compare.ts"
import type { Workbench } from "../git/workbench.ts"
import { digestsOf, listingOf, type Ground, type Listed } from "./listing.ts"

/**
 * Which files of two sessions are not the same. A fork has the times of what it was forked from, so most files are known to be the
 * same without being read; what has the same size and another time is. Neither session sees anything of the other.
 */
export async function compare(
  benches: readonly [here: Workbench, there: Workbench],
  ground: Ground,
  signal: AbortSignal,
): Promise<{ files: ComparedFile[]; isCut: boolean }> {
  const [a, b] = await Promise.all(benches.map((bench) => listingOf(bench, ground, signal)))
  if (!a || !b) throw new Error("two listings are made")
  const doubtful = [...a.files].flatMap(([path, one]) => (isDoubtful(one, b.files.get(path)) ? [path] : []))
  const [mine, theirs] = await Promise.all(benches.map((bench) => digestsOf(bench, ground.folder, doubtful, signal)))
  const isSame = (path: string): boolean => mine?.get(path) !== undefined && mine.get(path) === theirs?.get(path)
  const paths = [...new Set([...a.files.keys(), ...b.files.keys()])].toSorted()
  const files = paths.flatMap((path): ComparedFile[] => {
    const [one, other] = [a.files.get(path), b.files.get(path)]
    if (one && other && (isAlike(one, other) || (isDoubtful(one, other) && isSame(path)))) return []
    const where = one && other ? "both" : one ? "here" : "there"
    return [{ path, where, ...(one && { sizeHere: one.size }), ...(other && { sizeThere: other.size }) }]
  })
  return { files: files.slice(0, comparedFilesMax), isCut: a.isCut || b.isCut || files.length > comparedFilesMax }
}

function isAlike(one: Listed, other: Listed): boolean {
  return one.size === other.size && one.writtenAt === other.writtenAt && one.link === other.link
}

/** Only what is in them can tell. */
function isDoubtful(one: Listed, other: Listed | undefined): boolean {
  const areFiles = one.link === undefined && other !== undefined && other.link === undefined
  return areFiles && one.size === other.size && one.writtenAt !== other.writtenAt
}
