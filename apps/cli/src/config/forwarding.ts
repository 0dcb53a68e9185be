import { readFile } from "node:fs/promises"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import type { Forwarded } from "@warren/protocol/forwarded.ts"
import type { Variable } from "../arguments/flag.ts"
import { environmentName } from "../arguments/values.ts"
import type { Place } from "./place.ts"

/** What is written so goes to sandboxes, without the prefix, and to nobody else. */
const shellPrefix = "SHELL_"

type Environment = Readonly<Record<string, string | undefined>>

interface Given {
  readonly env: readonly Variable[]
  readonly envFile: readonly string[]
}

/** The variables a runner is started with, each for one side only. What the command line says goes before what files say. */
export async function forwardedOf(place: Place, given: Given, env: Environment): Promise<Forwarded> {
  const files = await Promise.all(given.envFile.map(readEnvFile))
  const said = [...files.flat(), ...given.env].flatMap((variable) => [...valueOf(variable, env)])
  const forSandbox = said.filter(([name]) => name.startsWith(shellPrefix) && name.length > shellPrefix.length)
  const forAgent = said.filter(([name]) => !name.startsWith(shellPrefix))
  return {
    agent: Object.fromEntries([...set(place.agentKeys, env), ...forAgent]),
    shell: Object.fromEntries([
      ...set(place.shellKeys, env),
      ...forSandbox.map(([name, value]) => [name.slice(shellPrefix.length), value] as const),
    ]),
  }
}

/** Each variable with its value: said, or the one it has here. One that has none is left out, as if it were not set. */
export function* valueOf({ name, value }: Variable, env: Environment): Generator<readonly [string, string]> {
  const known = value ?? env[name]
  if (known !== undefined) yield [name, known]
}

function set(keys: readonly string[], env: Environment): (readonly [string, string])[] {
  return keys.flatMap((name) => [...valueOf({ name }, env)])
}

/** `NAME=VALUE` on each line, `#` begins a comment line; quotes around a value are taken away. */
export async function readEnvFile(file: string): Promise<Variable[]> {
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new Fault("not_found", `--env-file ${file} cannot be read (${errnoOf(cause)})`, { cause })
  })
  return text.split("\n").flatMap((line, index) => {
    const trimmed = line.trim().replace(/^export\s+/, "")
    if (trimmed === "" || trimmed.startsWith("#")) return []
    const at = trimmed.indexOf("=")
    const name = at < 0 ? trimmed : trimmed.slice(0, at).trimEnd()
    if (!environmentName.test(name)) throw new Fault("invalid", `${file}:${index + 1}: not NAME=VALUE`)
    return [at < 0 ? { name } : { name, value: unquoted(trimmed.slice(at + 1).trim()) }]
  })
}

function unquoted(text: string): string {
  const [, , inner] = /^(["'])(.*)\1$/s.exec(text) ?? []
  return inner ?? text
}
