import { readFileSync } from "node:fs"

/** Limits of a user namespace, by their names in /proc/sys/user. */
export interface UserLimits {
  readonly max_user_namespaces: number
  readonly max_inotify_instances: number
  readonly max_inotify_watches: number
}

/** Of a sandbox's own: inotify is otherwise shared by all, and nested namespaces are not for guests. */
export const userLimits: UserLimits = {
  max_user_namespaces: 0,
  max_inotify_instances: 128,
  max_inotify_watches: 65_536,
}

/** How many sandboxes of an ordinary user can take all they may before another has none. */
const takers = 4

/**
 * What an ordinary user's sandboxes take, the kernel counts for that user as well, who has no more than `host` allows: with the usual limits
 * one sandbox could leave none to the others. So each may take a part.
 */
export function shareOf(usual: UserLimits, host: Omit<UserLimits, "max_user_namespaces">): UserLimits {
  const part = (mine: number, all: number): number => Math.max(1, Math.min(mine, Math.floor(all / takers)))
  return {
    ...usual,
    max_inotify_instances: part(usual.max_inotify_instances, host.max_inotify_instances),
    max_inotify_watches: part(usual.max_inotify_watches, host.max_inotify_watches),
  }
}

export function hostLimits(): Omit<UserLimits, "max_user_namespaces"> {
  const limit = (name: string): number => Number(readFileSync(`/proc/sys/user/${name}`, "utf8"))
  return { max_inotify_instances: limit("max_inotify_instances"), max_inotify_watches: limit("max_inotify_watches") }
}
