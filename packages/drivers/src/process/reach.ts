import { existsSync } from "node:fs"
import { join } from "node:path"

/** Programs and what they link. Symbolic links such as `/bin` lead into `/usr` and cost nothing. */
const programs = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"]

/** Of `/etc`, what programs ask for at their start and holds no secret. No shadow, no ssh, no keys, nobody's home. */
const etc = [
  "alternatives",
  "bash.bashrc",
  "ca-certificates",
  "ca-certificates.conf",
  "debian_version",
  "default/locale",
  "fonts",
  "gai.conf",
  "group",
  "host.conf",
  "hosts",
  "inputrc",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "locale.alias",
  "localtime",
  "lsb-release",
  "magic",
  "magic.mime",
  "mime.types",
  "nsswitch.conf",
  "os-release",
  "passwd",
  "profile",
  "profile.d",
  "protocols",
  "python3",
  "services",
  "shells",
  "ssl/certs",
  "ssl/openssl.cnf",
  "terminfo",
  "timezone",
]

const devices = ["null", "zero", "full", "random", "urandom", "tty"]
/** Opened by their owner's uid, so only for a uid that no terminal of a person has. */
const terminals = ["ptmx", "pts"]

/** What a sandbox can reach of the machine, as Landlock is told. What is not here does not open. */
export interface Reach {
  readonly run: readonly string[]
  readonly read: readonly string[]
  readonly write: readonly string[]
  readonly devices: readonly string[]
}

export function reachOf(folders: readonly string[], hasTerminals: boolean): Reach {
  const there = (paths: readonly string[]): string[] => paths.filter((path) => existsSync(path))
  return {
    run: there(programs),
    // init finds by it what its commands left running; `/proc/self` cannot be had without the rest.
    read: ["/proc", ...there(etc.map((name) => join("/etc", name)))],
    write: folders,
    devices: there([...devices, ...(hasTerminals ? terminals : [])].map((name) => join("/dev", name))),
  }
}

/** The rule that would open this path to every sandbox; undefined when none does. */
export function openedBy(path: string): string | undefined {
  return [...programs, "/proc", "/etc"].find((folder) => path === folder || path.startsWith(`${folder}/`))
}
