import type { Input } from "@warren/sdk/routes.ts"
import { hostOf, keysFor, type AgentWish } from "../../session/agent-wishes.ts"

export interface NetworkWish {
  readonly mode: "usual" | "none" | "list" | "all-public" | "bridge" | "host"
  /** One host a line. */
  readonly allow: string
}

export interface LimitWish {
  readonly cpus: string
  readonly memoryGb: string
  readonly diskGb: string
}

/** What stands in the form: texts, as they were typed. */
export interface Wishes extends AgentWish {
  readonly prompt: string
  readonly repo: string
  readonly branch: string
  readonly name: string
  readonly image: string
  readonly driver: "" | "oci" | "process"
  readonly workspace: string
  readonly network: NetworkWish
  readonly limits: LimitWish
  readonly idleMinutes: string
}

export const noWishes: Wishes = {
  prompt: "",
  agent: "scripted",
  command: "",
  models: "",
  repo: "",
  branch: "",
  name: "",
  image: "",
  driver: "",
  workspace: "",
  network: { mode: "usual", allow: "" },
  limits: { cpus: "", memoryGb: "", diskGb: "" },
  idleMinutes: "",
}

type Session = Input<"POST /v1/sessions">

const gb = 1024 ** 3

/** What is asked of Warren for it. What was not said is left to its defaults. */
export function sessionWishes(wishes: Wishes, secrets: readonly string[]): Session {
  const { name, image, driver, workspace, agent, repo, idleMinutes } = wishes
  const network = networkOf(wishes)
  const limits = limitsOf(wishes.limits)
  const keys = keysFor(agent, repo, secrets)
  return {
    ...(name ? { name } : {}),
    ...(image ? { image } : {}),
    ...(driver ? { driver } : {}),
    ...(workspace ? { workspace } : {}),
    ...(network ? { network } : {}),
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
    ...(keys.length > 0 ? { keys } : {}),
    ...(idleMinutes ? { idle: { afterMs: Number(idleMinutes) * 60_000, action: "hibernate" } } : {}),
  }
}

function networkOf({ network: { mode, allow }, repo }: Wishes): Session["network"] {
  const hosts = allow.split(/[\s,]+/).filter(Boolean)
  const host = hostOf(repo)
  // A repository that was named is meant to be reached.
  const named = host && !hosts.includes(host) ? [...hosts, host] : hosts
  if (mode === "usual") return named.length > 0 ? { mode: "proxy", allow: named } : undefined
  if (mode === "list" || mode === "all-public") return { mode: "proxy", access: mode, allow: named }
  return { mode }
}

function limitsOf({ cpus, memoryGb, diskGb }: LimitWish): NonNullable<Session["limits"]> {
  return {
    ...(cpus ? { cpus: Number(cpus) } : {}),
    ...(memoryGb ? { memoryBytes: Math.round(Number(memoryGb) * gb) } : {}),
    ...(diskGb ? { diskBytes: Math.round(Number(diskGb) * gb) } : {}),
  }
}
