import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import type { People } from "./people.ts"

/** Who besides its owner and root may connect to a socket. */
type Also = "nobody" | "control"

/** Every kind of socket there is on a machine with users. One that is none of these has no business there. */
const kinds: readonly (readonly [pattern: RegExp, also: Also])[] = [
  [/\/run\/launcher\.sock$/, "control"],
  [/\/run\/[^/]+\/control\.sock$/, "control"],
  [/\/run\/[^/]+\/gateway\.sock$/, "control"],
  [/\/runner\/ipc\/(?:rpc|control|gateway)\.sock$/, "nobody"],
  [/\/init\.sock$/, "nobody"],
  // In the sandbox itself: for its own programs.
  [/\/root\/run\/warren\/sudo\.sock$/, "nobody"],
  [/\/proxy\.sock$/, "nobody"],
]

export interface SocketsSeen {
  readonly paths: readonly string[]
  readonly tried: number
  readonly wrong: readonly unknown[]
}

/** Finds every socket of the machine's, by looking, and has everybody who should not connect to it. */
export async function socketsOf({ machine, alice, bob }: People): Promise<SocketsSeen> {
  const folders = [machine.at("run"), machine.at("machine"), `/home/${alice.name}`, `/home/${bob.name}`]
  const found = execFileSync("find", [...folders, "-xdev", "-type", "s"], { encoding: "utf8" })
    .split("\n")
    .filter(Boolean)
  // Also those whose names are in no folder any more, or were never in one.
  const open = readFileSync("/proc/net/unix", "utf8")
    .split("\n")
    .flatMap((line) => line.split(/\s+/).slice(7))
  const ours = open.filter((path) => path.includes(machine.mark) || path.startsWith(machine.at("")))
  const paths = [...new Set([...found, ...ours])].toSorted()
  const known = paths.map((path) => ({ path, kind: kinds.find(([pattern]) => pattern.test(path)) }))
  const wrong: unknown[] = known
    .filter(({ kind }) => !kind)
    .map(({ path }) => [path, "is no socket that anybody knows of"])
  let tried = 0
  for (const account of [alice.name, bob.name, machine.control, "daemon"]) {
    const shut = known.filter(({ path, kind }) => {
      const mayToo = account === machine.control && kind?.[1] === "control"
      return !mayToo && !path.includes(`/${account}/`)
    })
    tried += shut.length
    const said = await machine.attempt(account, connecting(shut.map(({ path }) => path)))
    if (said !== undefined) wrong.push([account, said])
  }
  return { paths, tried, wrong }
}

/** A command that connects to each, and fails with the names of those it was not refused at. */
function connecting(sockets: readonly string[]): string {
  const program = `
    const refused = (path) => new Promise((settle) => require("net").connect(path)
      .on("connect", () => settle(false)).on("error", (e) => settle(e.code === "EACCES" || e.code === "EPERM")))
    Promise.all(process.argv.slice(1).map(async (path) => (await refused(path)) || console.error(path)))
      .then((all) => process.exit(all.every((one) => one === true) ? 0 : 1))`
  return `'${process.execPath}' -e '${program}' ${sockets.map((path) => `'${path}'`).join(" ")}`
}

/** Ports that programs of these accounts listen on, outside of sandboxes. */
export function portsOf(accounts: readonly string[]): { readonly account: string; readonly port: number }[] {
  const uids = new Map(
    readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .map((line) => line.split(":"))
      .map(([name = "", , uid]) => [Number(uid), name]),
  )
  return ["tcp", "tcp6", "udp", "udp6"].flatMap((kind) =>
    readFileSync(`/proc/net/${kind}`, "utf8")
      .split("\n")
      .slice(1)
      .flatMap((line) => {
        const [, local = "", , state, , , , uid] = line.trim().split(/\s+/)
        const account = uids.get(Number(uid)) ?? ""
        const isListening = state === "0A" || (kind.startsWith("udp") && state === "07")
        return isListening && accounts.includes(account)
          ? [{ account, port: Number.parseInt(local.split(":").at(-1) ?? "", 16) }]
          : []
      }),
  )
}
