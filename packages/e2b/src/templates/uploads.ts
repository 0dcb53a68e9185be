import { Fault } from "@warren/base/fault.ts"
import type { Plane } from "../plane.ts"
import { bodyOf, filled } from "../transfer.ts"

/** What is sent for builds lies in a workspace of the user's own: the same files are sent once. */
export const filesWorkspace = "e2b-builds"

export function filesPath(hash: string): string {
  if (!/^[0-9a-f]{16,128}$/.test(hash)) throw new Fault("invalid", "that is not the digest of files")
  return `${hash}.tar`
}

export async function isSent(plane: Plane, hash: string): Promise<boolean> {
  const path = filesPath(hash)
  return plane.call("workspace.stat", { name: filesWorkspace, path }).then(
    () => true,
    (thrown: unknown) => {
      if (thrown instanceof Fault && thrown.code === "not_found") return false
      throw thrown
    },
  )
}

export async function keepSent(plane: Plane, hash: string, request: Request): Promise<void> {
  await plane.call("workspace.create", { name: filesWorkspace }).catch((thrown: unknown) => {
    if (!(thrown instanceof Fault) || thrown.code !== "conflict") throw thrown
  })
  const path = filesPath(hash)
  await filled(await plane.stream("workspace.write", { name: filesWorkspace, path }), bodyOf(request))
}
