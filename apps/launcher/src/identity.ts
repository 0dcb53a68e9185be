/** Whom a program is run as. */
export interface Identity {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly home: string
}

/**
 * Opened by the program's own account, never by root: in a folder of somebody else's a root who writes can be led anywhere.
 * What it says before its own log is open is kept until the next start.
 */
const script = 'umask 077; ulimit -c 0; mkdir -p "$0" && exec "$@" 2> "$0/said.log"'

/**
 * The command that becomes somebody and then runs a program: no group of ours, no inherited or ambient capability. The
 * bounding set stays, because without it newuidmap has no right to write a map. It is told to end when we die.
 */
export function commandAs({ uid, gid }: Identity, folder: string, argv: readonly string[]): [string, string[]] {
  const become = ["--reuid", String(uid), "--regid", String(gid), "--clear-groups"]
  const without = ["--inh-caps=-all", "--ambient-caps=-all", "--pdeathsig", "TERM"]
  return ["setpriv", [...become, ...without, "--", "sh", "-c", script, folder, ...argv]]
}

/** Everything it finds in its environment besides what is given on purpose. */
export function environmentOf({ name, home }: Identity): Record<string, string> {
  const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
  return { PATH, HOME: home, USER: name, LOGNAME: name, LANG: "C.UTF-8" }
}
