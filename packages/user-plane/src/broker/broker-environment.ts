import { egressPort } from "../egress/proxy-environment.ts"
import type { GrantedLease, LeaseScope } from "./lease.ts"

type Given = Pick<GrantedLease, "scope" | "destination" | "token">
type Setting = readonly [name: string, value: string]

/**
 * What makes ordinary programs in a sandbox use the broker: LLM clients find it as their base URL with the lease as their key; git is
 * told by configuration in the environment, so that no file ever holds even the lease, and remotes keep their real URLs.
 */
export function brokerEnvironment(leases: readonly Given[], port: number = egressPort): Record<string, string> {
  const origin = `http://127.0.0.1:${port}`
  const llms = leases.flatMap((lease) => llmVariables[lease.scope]?.(origin, lease.token) ?? [])
  const settings = leases.filter(({ scope }) => scope.startsWith("git:")).flatMap((lease) => gitSettings(origin, lease))
  const git = settings.flatMap(([name, value], index): Setting[] => [
    [`GIT_CONFIG_KEY_${index}`, name],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ])
  const switches: Setting[] =
    settings.length === 0
      ? []
      : [
          ["GIT_CONFIG_COUNT", String(settings.length)],
          ["GIT_TERMINAL_PROMPT", "0"],
        ]
  return Object.fromEntries([...llms, ...switches, ...git])
}

const llmVariables: Readonly<Partial<Record<LeaseScope, (origin: string, token: string) => Setting[]>>> = {
  "llm:anthropic": (origin, token) => [
    ["ANTHROPIC_BASE_URL", `${origin}/anthropic`],
    ["ANTHROPIC_API_KEY", token],
  ],
  "llm:openai": (origin, token) => [
    ["OPENAI_BASE_URL", `${origin}/openai/v1`],
    ["OPENAI_API_BASE", `${origin}/openai/v1`],
    ["OPENAI_API_KEY", token],
  ],
}

/** Every way of writing the destination leads to the broker, and only what goes there carries the lease. */
function gitSettings(origin: string, { destination, token }: Given): Setting[] {
  const [host = "", ...path] = destination.split("/")
  const isHost = path.length === 0
  const to = `${origin}/git/${destination}${isHost ? "/" : ""}`
  const rest = isHost ? "" : path.join("/")
  const forms = [`https://${host}/${rest}`, `ssh://git@${host}/${rest}`, `git@${host}:${rest}`]
  const header = `Authorization: Basic ${Buffer.from(`lease:${token}`).toString("base64")}`
  // Git compares whole parts of a path: a repository is asked for with and without its ending.
  const places = isHost ? [to] : [to, `${to}.git`]
  return [
    ...forms.map((form): Setting => [`url.${to}.insteadOf`, form]),
    ...places.map((place): Setting => [`http.${place}.extraHeader`, header]),
  ]
}
