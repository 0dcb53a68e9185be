import type { Output } from "@warren/sdk/routes.ts"
import { sentence } from "../../parts/sentence.ts"

type Posture = Output<"GET /v1/sessions/{id}/posture">

/** One thing that was measured, in plain words. */
export interface Finding {
  readonly words: string
  readonly isGood: boolean
  /** What was measured, as the kernel says it. */
  readonly evidence: string
}

/** What each namespace keeps apart. */
const apart: Readonly<Record<string, string>> = {
  pid: "sees no other process",
  mnt: "has its own file system",
  net: "has its own network",
  ipc: "shares no memory",
  uts: "has its own name",
  user: "its root is nobody outside",
  cgroup: "sees only its own limits",
}

/** What is known of a sandbox, as sentences with their evidence. What a driver does not measure is not said. */
export function findings(posture: Posture): readonly Finding[] {
  return [...privileges(posture), ...namespaces(posture), ...degraded(posture)]
}

function* privileges({ noNewPrivileges, seccompMode, capabilities }: Posture): Generator<Finding> {
  if (typeof noNewPrivileges === "boolean")
    yield {
      words: noNewPrivileges ? "Cannot gain privileges" : "May gain privileges",
      isGood: noNewPrivileges,
      evidence: `NoNewPrivs: ${noNewPrivileges ? 1 : 0}`,
    }
  if (typeof seccompMode === "number")
    yield {
      words: seccompMode > 0 ? "System calls are filtered" : "System calls are not filtered",
      isGood: seccompMode > 0,
      evidence: `Seccomp: ${seccompMode}`,
    }
  const sets = records(capabilities)
  const effective = sets.find(([name]) => name === "effective")?.[1]
  if (typeof effective === "string") {
    const count = bitsOf(effective)
    const of = count === 1 ? "one of root's powers" : `${count} of root's powers`
    yield {
      words: count === 0 ? "Has none of root's powers" : `Its first process has ${of}, inside only`,
      isGood: true,
      evidence: sets.map(([name, bits]) => `${name}: ${String(bits)}`).join("\n"),
    }
  }
}

function* namespaces({ namespaces, uidMap }: Posture): Generator<Finding> {
  const all = new Map(records(namespaces))
  for (const [name, words] of Object.entries(apart)) {
    const { isOwn, id } = (all.get(name) ?? {}) as { readonly isOwn?: boolean; readonly id?: string }
    if (isOwn === undefined) continue
    const map = name === "user" && Array.isArray(uidMap) ? `\nuid_map: ${JSON.stringify(uidMap)}` : ""
    yield {
      words: isOwn ? sentence(words) : `Not so: ${words}`,
      isGood: isOwn,
      evidence: `${name}: ${id ?? ""}${isOwn ? ", not the host's" : ", the host's"}${map}`,
    }
  }
}

function* degraded({ degraded }: Posture): Generator<Finding> {
  for (const words of degraded) yield { words: sentence(words), isGood: false, evidence: words }
}

function bitsOf(hex: string): number {
  return BigInt(`0x${hex || "0"}`)
    .toString(2)
    .replaceAll("0", "").length
}

function records(value: unknown): [string, unknown][] {
  return typeof value === "object" && value !== null ? Object.entries(value) : []
}
