import { dirname, join } from "node:path"
import type { CgroupMounts } from "./open.ts"

/** What an ordinary user was given, or why it is nothing. */
export type Delegated =
  | { readonly version: 1; readonly folders: ReadonlyMap<string, string> }
  | { readonly version: 2; readonly folder: string }
  | { readonly missing: string }

export interface OwnGroups {
  readonly mounts: CgroupMounts
  /** The text of `/proc/self/cgroup`. */
  readonly self: string
  /** A group that was made for this user, as a path below every hierarchy. */
  readonly parent: string | undefined
  /** Whether this user may make groups in a folder. */
  canWrite(folder: string): boolean
}

/** Limits need these; without one of them there are none. (`devices` cannot be set by an ordinary user; nor can nodes be made.) */
const v1Controllers = ["memory", "cpu", "cpuacct", "pids", "freezer"]

/** The group a runner of ours moved itself to: what was delegated is the one above. */
export const runnerLeaf = "warren-runner"

/** Groups that this user may divide: the one named, or the one we are in. */
export function delegated(own: OwnGroups): Delegated {
  const { v1, v2 } = own.mounts
  if (v1.has("memory")) return delegatedV1(own)
  if (v2 === undefined) return { missing: "this machine has no cgroups" }
  const folder = candidates(own, v2, "").find((path) => own.canWrite(path))
  return folder === undefined ? { missing: "no cgroup was delegated to this user" } : { version: 2, folder }
}

function delegatedV1(own: OwnGroups): Delegated {
  const folders = new Map<string, string>()
  for (const controller of v1Controllers) {
    const mount = own.mounts.v1.get(controller)
    const folder = mount && candidates(own, mount, controller).find((path) => own.canWrite(path))
    if (!folder) return { missing: `no ${controller} cgroup was delegated to this user` }
    folders.set(controller, folder)
  }
  return { version: 1, folders }
}

function candidates({ parent, self }: OwnGroups, mount: string, controller: string): string[] {
  const path = pathOf(self, controller)
  const own = path?.endsWith(`/${runnerLeaf}`) ? dirname(path) : path
  return [parent, own].filter((candidate) => candidate !== undefined).map((candidate) => join(mount, candidate))
}

/** Lines are `number:controllers:path`; those of version 2 have no controllers. */
function pathOf(self: string, controller: string): string | undefined {
  const lines = self
    .trim()
    .split("\n")
    .map((line) => line.split(":"))
  const line = lines.find(([, controllers = ""]) => controllers.split(",").includes(controller))
  return line?.slice(2).join(":")
}
