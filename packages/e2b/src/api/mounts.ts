import { posix } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { Plane, Session } from "../plane.ts"
import { runToEnd } from "../run-to-end.ts"

interface Mount {
  readonly name: string
  readonly path: string
}

const place = "/workspace"

/** A volume is a workspace. A session has one, at a place of its own: the path that was asked for leads there. */
export const mounts = {
  wish(volumes: readonly Mount[]): { workspace?: string } {
    if (volumes.length > 1) throw new Fault("unsupported", "a sandbox has one volume at most")
    const [volume] = volumes
    if (!volume) return {}
    if (posix.resolve("/", volume.path) === "/") throw new Fault("invalid", "a volume cannot be mounted at /")
    return { workspace: volume.name }
  },

  async place(plane: Plane, { id }: Session, volumes: readonly Mount[]): Promise<void> {
    const [volume] = volumes
    const path = volume && posix.resolve("/", volume.path)
    if (path === undefined || path === place) return
    const script = 'mkdir -p "$(dirname "$1")" && rmdir "$1" 2>/dev/null; ln -sT "$2" "$1"'
    const { exitCode } = await runToEnd(plane, {
      session: id,
      user: "root",
      argv: ["sh", "-c", script, "sh", path, place],
    })
    if (exitCode !== 0) throw new Fault("conflict", `something is at ${path} already`)
  },
}
