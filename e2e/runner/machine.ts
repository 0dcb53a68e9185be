import { readdirSync, readFileSync, statSync } from "node:fs"
import { basename } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { isId } from "@warren/base/id.ts"
import Sqlite from "libsql"
import { footprint, launcherPids } from "@warren/drivers/oci/testing/invariants.ts"
import type { Home } from "./home.ts"

/** What of a runner can be seen on the machine, and what it has written down. */
export interface Machine {
  /** The sandboxes in the runner's table, and whose they are. */
  readonly ledger: readonly { readonly id: string; readonly owner: string; readonly network: string }[]
  readonly sessions: readonly { readonly id: string; readonly state: string; readonly sandbox?: string }[]
  readonly snapshots: readonly { readonly id: string; readonly state: string }[]
  /** Sandboxes that may have leases. */
  readonly leased: readonly string[]
  readonly folders: readonly string[]
  readonly egress: readonly string[]
  /** Sandboxes that have a group. */
  readonly groups: readonly string[]
  /** Of these, those with a process in it. */
  readonly alive: readonly string[]
  readonly strayMounts: readonly string[]
  readonly volumes: number
  readonly loops: number
  readonly launchers: number
  readonly scratch: readonly string[]
}

/** What a runner keeps in its scratch folder for others to find. */
const markers = new Set(["gateway-endpoint"])

/** Reads everything at this moment; while the runner works, parts of it may be of different moments. */
export function lookAt(home: Home): Machine {
  const { mounts, cgroups, loops } = footprint(home.driverRoot, [])
  const sandboxes = cgroups.map((folder) => ({ folder, id: basename(folder) })).filter(({ id }) => isId("sbx", id))
  const ours = mounts.filter((line) => line.includes(home.path))
  return {
    ...written(home),
    folders: names(home.at("sandboxes", "oci", "volume")).filter((name) => isId("sbx", name) || isSnapshot(name)),
    egress: names(home.at("internal", "egress")),
    groups: [...new Set(sandboxes.map(({ id }) => id))],
    alive: [...new Set(sandboxes.filter(({ folder }) => hasProcess(folder)).map(({ id }) => id))],
    strayMounts: ours.filter((line) => !line.includes(`${home.driverRoot}/volume `)),
    volumes: ours.filter((line) => line.includes(`${home.driverRoot}/volume `)).length,
    loops: loops.length,
    launchers: launcherPids(home.driverRoot).length,
    scratch: names(home.at("tmp")).filter((name) => !markers.has(name)),
  }
}

/** Everything that is somewhere and should not be, or should and is not. Empty: what is written down is what there is. */
export function leaks(machine: Machine, isRunning: boolean): string[] {
  const { ledger, sessions, folders, groups, alive } = machine
  const known = new Set(ledger.map(({ id }) => id))
  const owners = new Set(["pool", ...sessions.map(({ id }) => id)])
  const held = new Map(sessions.flatMap(({ id, sandbox }) => (sandbox === undefined ? [] : [[sandbox, id] as const])))
  const awake = new Set(sessions.filter(({ state }) => state === "running" || state === "paused").map(({ id }) => id))
  const onDisk = folders.filter((name) => !isSnapshot(name))
  const lively = ledger.filter(({ owner }) => owner === "pool" || awake.has(owner)).map(({ id }) => id)
  const proxied = new Set(ledger.filter(({ network }) => network === "proxy").map(({ id }) => id))
  const ready = machine.snapshots.filter(({ state }) => state === "ready").map(({ id }) => id)
  const count = (what: string, is: number, want: number): string[] =>
    is === want ? [] : [`${is} ${what}, not ${want}`]
  return [
    ...ledger.filter(({ owner }) => !owners.has(owner)).map(({ id, owner }) => `${id} is of ${owner}, who is gone`),
    ...ledger
      .filter(({ id, owner }) => owner !== "pool" && held.get(id) !== owner)
      .map(({ id, owner }) => `${id} is of ${owner}, who has another`),
    ...differences("sandbox on disk", onDisk, [...known]),
    ...[...held.keys()].filter((id) => !known.has(id)).map((id) => `${id} of a session is not in the table`),
    ...differences("sandbox with a process", alive, lively),
    ...groups.filter((id) => !lively.includes(id)).map((id) => `${id} has a group and does not run`),
    ...machine.egress.filter((id) => !proxied.has(id)).map((id) => `${id} left its way out`),
    ...machine.leased.filter((id) => !known.has(id)).map((id) => `${id} left leases`),
    ...differences("snapshot on disk", folders.filter(isSnapshot), ready),
    ...machine.snapshots.filter(({ state }) => state !== "ready").map(({ id, state }) => `${id} is ${state}`),
    ...machine.strayMounts.map((line) => `mount: ${line}`),
    ...machine.scratch.map((name) => `tmp/${name}`),
    ...count("volumes mounted", machine.volumes, isRunning ? 1 : machine.volumes),
    ...count("loop devices", machine.loops, machine.volumes),
    ...count("launchers", machine.launchers, isRunning ? 1 : 0),
  ]
}

/** The leaks that stay: a pool that fills, or a kernel that takes a moment, is none. */
export async function lastingLeaks(home: Home, isRunning = true): Promise<string[]> {
  for (let tries = 0; ; tries++) {
    const found = leaks(lookAt(home), isRunning)
    if (found.length === 0 || tries === triesMax) return found
    await pause(lookAgainMs)
  }
}

const lookAgainMs = 20
const triesMax = 400

function differences(what: string, is: readonly string[], wanted: readonly string[]): string[] {
  return [
    ...is.filter((one) => !wanted.includes(one)).map((one) => `${what} that should not be: ${one}`),
    ...wanted.filter((one) => !is.includes(one)).map((one) => `${what} that is missing: ${one}`),
  ]
}

/** Also a draft of one. */
function isSnapshot(name: string): boolean {
  return name.startsWith("snp_")
}

function written(home: Home): Pick<Machine, "ledger" | "sessions" | "snapshots" | "leased"> {
  const database = new Sqlite(home.database)
  const rows = (sql: string) => database.prepare(sql).all() as Record<string, string>[]
  try {
    return {
      ledger: rows("SELECT id, owner, plan FROM sandboxes").map(({ id = "", owner = "", plan = "{}" }) => ({
        ...{ id, owner, network: (JSON.parse(plan) as { network: string }).network },
      })),
      sessions: rows("SELECT id, state, record FROM sessions").map(({ id = "", state = "", record = "{}" }) => ({
        ...{ id, state, ...sandboxOf(record) },
      })),
      snapshots: rows("SELECT id, state FROM snapshots").map(({ id = "", state = "" }) => ({ id, state })),
      leased: rows("SELECT DISTINCT session FROM leases WHERE revoked_at IS NULL").map(({ session = "" }) => session),
    }
  } finally {
    database.close()
  }
}

function sandboxOf(record: string): { sandbox?: string } {
  const { sandbox } = JSON.parse(record) as { sandbox?: string }
  return sandbox === undefined ? {} : { sandbox }
}

function names(folder: string): string[] {
  return statSync(folder, { throwIfNoEntry: false }) ? readdirSync(folder) : []
}

function hasProcess(group: string): boolean {
  try {
    return readFileSync(`${group}/cgroup.procs`, "utf8") !== ""
  } catch {
    return false
  }
}
