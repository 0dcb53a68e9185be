import { readFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import { load } from "@warren/base/settings.ts"
import { settings } from "../settings.ts"
import { readRunnerToml, type RunnerToml } from "./runner-toml.ts"

type Environment = Readonly<Record<string, string | undefined>>

/** Whose Warren is meant: where its data is, and what is configured for it. */
export interface Place {
  readonly home: string
  readonly port: number
  readonly driver?: "oci" | "process"
  /** The image of sessions that ask for none. */
  readonly image?: string
  /** The Linux account it runs as; the caller's own when absent. */
  readonly account?: string
  readonly agentKeys: readonly string[]
  readonly shellKeys: readonly string[]
}

interface Asked {
  readonly config: string | undefined
  readonly user: string | undefined
}

export async function findPlace({ config, user }: Asked, env: Environment): Promise<Place> {
  const values = load(settings, env)
  const asked = config ?? (values.config === "" ? undefined : values.config)
  const file = resolve(asked ?? join(values.home, "runner.toml"))
  const text = await readConfig(file, asked !== undefined)
  if (text !== undefined) return placeOf(readRunnerToml(text, file), { user, file, env })
  if (user !== undefined) {
    throw new Fault("not_found", `there is no user "${user}": there is no ${file}`, { hint: "say which with --config" })
  }
  return { home: values.home, port: values.port, agentKeys: [], shellKeys: [] }
}

async function readConfig(file: string, isNeeded: boolean): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8")
  } catch (cause) {
    if (errnoOf(cause) === "ENOENT" && !isNeeded) return undefined
    const reason = errnoOf(cause) === "ENOENT" ? "is not there" : `cannot be read (${errnoOf(cause)})`
    throw new Fault(errnoOf(cause) === "ENOENT" ? "not_found" : "invalid", `${file} ${reason}`, { cause })
  }
}

function placeOf(toml: RunnerToml, given: { user: string | undefined; file: string; env: Environment }): Place {
  const { home, port } = load(settings, given.env)
  const user = userOf(toml, given)
  const own = user === undefined ? {} : (toml.users[user] ?? {})
  const root = toml.workspace_root ?? home
  const driver = own.driver ?? toml.default_driver
  const image = own.image ?? toml.guest_images.session
  return {
    home: user === undefined ? root : join(root, user),
    port: given.env["WARREN_PORT"] ? port : (own.port ?? toml.port ?? port),
    agentKeys: [...toml.agent.env_keys, ...Object.values(toml.providers).map(({ api_key_env }) => api_key_env)],
    shellKeys: toml.shell.env_keys,
    ...(driver === undefined ? {} : { driver }),
    ...(image === undefined ? {} : { image }),
    ...(own.account === undefined ? {} : { account: own.account }),
  }
}

function userOf(toml: RunnerToml, { user, file }: { user: string | undefined; file: string }): string | undefined {
  const users = Object.keys(toml.users)
  if (user !== undefined) {
    if (users.includes(user)) return user
    throw new Fault("not_found", `there is no user "${user}" in ${file}`, {
      hint: `there is: ${users.join(", ") || "none"}`,
    })
  }
  if (users.length < 2) return users[0]
  throw new Fault("invalid", `${file} has ${users.length} users`, { hint: `say which: --user ${users.join(" | ")}` })
}
