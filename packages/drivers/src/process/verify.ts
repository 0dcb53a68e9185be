import { homedir } from "node:os"
import { Fault } from "@warren/base/fault.ts"
import type { Sandbox } from "../driver.ts"
import { Files, readAll } from "../init/files.ts"
import type { Posture } from "../posture.ts"
import type { Limits } from "../sandbox-spec.ts"

export interface Expected {
  readonly uid: number
  readonly isPerson: boolean
  /** The last part of the path of its cgroups; undefined when it has none. */
  readonly cgroupName: string | undefined
  readonly limits: Limits
}

const pageBytes = 4096

/** What must be in force and is not, each in one sentence. */
export function shortfalls(posture: Posture, expected: Expected): string[] {
  const found: string[] = []
  const must = (holds: boolean, otherwise: string): void => {
    if (!holds) found.push(otherwise)
  }
  must(posture.seccompMode === 2, "no system call filter is loaded")
  must(posture.noNewPrivileges, "no-new-privs is off")
  must(posture.uidMap[0]?.outside === expected.uid && expected.uid !== 0, "it runs as another user than asked for")
  for (const [set, value] of Object.entries(posture.capabilities)) {
    if (set === "bounding" && expected.isPerson) continue
    must(BigInt(`0x${value || "f"}`) === 0n, `there are ${set} capabilities`)
  }
  if (expected.cgroupName !== undefined) {
    for (const controller of ["memory", "pids", "cpu"]) {
      const path = Object.entries(posture.cgroups).find(([names]) => names.split(",").includes(controller))?.[1]
      const isIn = (path ?? posture.cgroups[""] ?? "").endsWith(`/${expected.cgroupName}`)
      must(isIn, `it is not in its ${controller} group`)
    }
    const { limits } = posture
    must(Math.abs(limits.cpus - expected.limits.cpus) < 0.02, "the cpu limit is not in force")
    must(Math.abs(limits.memoryBytes - expected.limits.memoryBytes) < pageBytes, "the memory limit is not in force")
    must(limits.pidsMax === expected.limits.pidsMax, "the pids limit is not in force")
  }
  return found
}

/**
 * What a program inside can do and must not, found out by trying. `canary` is a file that its permissions would let
 * everybody read: only Landlock stands before it, so a refusal shows that Landlock is there.
 */
export async function leaks(sandbox: Sandbox, canary: string): Promise<string[]> {
  const files = new Files(sandbox)
  const attempts: readonly Attempt[] = [
    { what: "a file beside its folders can be read", codes: ["forbidden"], act: () => readAll(files.read(canary), 64) },
    {
      what: "a file beside its folders can be written",
      codes: ["forbidden"],
      act: () => files.write(canary, Buffer.from("x"), { atomic: false }),
    },
    { what: "/etc/shadow can be read", codes: refusals, act: () => readAll(files.read("/etc/shadow"), 1 << 20) },
    { what: "the runner's home can be read", codes: refusals, act: () => files.list(homedir()) },
  ]
  const [own, ...found] = await Promise.all([ownFolder(files), ...attempts.map(leakOf)])
  return [own, ...found].filter((leak) => leak !== undefined)
}

interface Attempt {
  readonly what: string
  /** What a refusal may be called. */
  readonly codes: readonly string[]
  act(): Promise<unknown>
}

const refusals = ["forbidden", "not_found"]

async function leakOf({ what, codes, act }: Attempt): Promise<string | undefined> {
  try {
    await act()
    return what
  } catch (failure) {
    if (failure instanceof Fault && codes.includes(failure.code)) return undefined
    throw failure
  }
}

/** If nothing could be opened at all, refusals would show nothing. */
async function ownFolder(files: Files): Promise<string | undefined> {
  return (await files.list("/workspace").catch(() => undefined)) ? undefined : "its own folder cannot be read"
}
