/** The first file descriptor after stdin, stdout and stderr. */
const firstFd = 3
const socketsMax = 16

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Sockets that whoever started this process has opened for it, by their names: what systemd calls socket activation. They
 * are for one process alone: meant for another, or forgotten by one that did not use them, they are not there. Node has
 * made them close-on-exec before this runs, so no child of ours gets them.
 */
export function inheritedSockets(env: Environment, pid: number): ReadonlyMap<string, number> {
  const count = Number(env["LISTEN_FDS"] ?? 0)
  const isForUs = env["LISTEN_PID"] === String(pid) && Number.isInteger(count) && count > 0 && count <= socketsMax
  if (!isForUs) return new Map()
  const names = (env["LISTEN_FDNAMES"] ?? "").split(":")
  return new Map(Array.from({ length: count }, (_, index) => [names[index] || `${index}`, firstFd + index]))
}

/** The variables that say so: nobody below is meant by them. */
export const inheritedVariables = ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] as const
