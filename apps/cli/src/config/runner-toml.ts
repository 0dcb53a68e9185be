import { parse, TomlError } from "smol-toml"
import { Fault } from "@warren/base/fault.ts"
import { z } from "zod"
import { environmentName } from "../arguments/values.ts"
import { nearest } from "../arguments/nearest.ts"
import { lineOf } from "./line-of.ts"

const name = z.string().regex(/^[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?$/, "1 to 32 of a-z, 0-9, _ and -")
const keys = z.array(z.string().regex(environmentName, "not a variable's name")).default([])
const driver = z.enum(["oci", "process"])
const port = z.int().min(1).max(65_535)
const absolute = z.string().startsWith("/", "must be an absolute path")

const Shape = z.strictObject({
  workspace_root: absolute.optional(),
  default_driver: driver.optional(),
  port: port.optional(),
  guest_images: z.strictObject({ session: z.string().min(1).max(512).optional() }).default({}),
  users: z
    .record(
      name,
      z.strictObject({
        account: z.string().min(1).max(32).optional(),
        driver: driver.optional(),
        image: z.string().min(1).max(512).optional(),
        port: port.optional(),
      }),
    )
    .default({}),
  agent: z.strictObject({ env_keys: keys }).default({ env_keys: [] }),
  providers: z
    .record(z.string().min(1).max(64), z.strictObject({ api_key_env: z.string().regex(environmentName) }))
    .default({}),
  shell: z.strictObject({ env_keys: keys }).default({ env_keys: [] }),
})

export type RunnerToml = z.output<typeof Shape>

/** What a `runner.toml` says. A key that would do nothing is refused: whoever wrote it believes that it does something. */
export function readRunnerToml(text: string, file: string): RunnerToml {
  const shape = Shape.safeParse(syntaxOf(text, file))
  if (shape.success) return checked(shape.data, text, file)
  const [issue] = shape.error.issues
  if (!issue) throw new Fault("invalid", `${file} has the wrong shape`)
  if (issue.code === "unrecognized_keys") throw unknownKey(text, file, issue.path, issue.keys[0] ?? "")
  throw complaint(text, file, issue.path, issue.message)
}

function syntaxOf(text: string, file: string): unknown {
  try {
    return parse(text)
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause
    const [reason = ""] = cause.message.split("\n")
    throw new Fault("invalid", `${file}:${cause.line}: ${reason.replace("Invalid TOML document: ", "")}`, { cause })
  }
}

function checked(toml: RunnerToml, text: string, file: string): RunnerToml {
  const [user] = Object.keys(toml.users)
  if (user !== undefined && toml.workspace_root === undefined) {
    throw complaint(text, file, ["users", user], "needs `workspace_root`, the folder that holds a folder for each user")
  }
  return toml
}

function complaint(text: string, file: string, path: readonly PropertyKey[], message: string): Fault {
  return new Fault("invalid", `${file}:${lineOf(text, path)}: ${path.map(String).join(".")}: ${message}`, {
    subject: `config:${file}`,
  })
}

function unknownKey(text: string, file: string, path: readonly PropertyKey[], key: string): Fault {
  const near = nearest(key, knownBelow(path))
  const full = [...path, key]
  return new Fault("invalid", `${file}:${lineOf(text, full)}: unknown key ${full.map(String).join(".")}`, {
    subject: `config:${file}`,
    hint: near === undefined ? `known here: ${knownBelow(path).join(", ")}` : `did you mean ${near}?`,
  })
}

/** The keys a table may have, found by walking the shape as the path does. */
function knownBelow(path: readonly PropertyKey[]): string[] {
  let at: unknown = Shape
  for (const step of path) {
    const inner = unwrapped(at)
    at = inner instanceof z.ZodObject ? inner.shape[String(step)] : inner instanceof z.ZodRecord ? inner.valueType : at
  }
  const inner = unwrapped(at)
  return inner instanceof z.ZodObject ? Object.keys(inner.shape) : []
}

function unwrapped(schema: unknown): unknown {
  let inner = schema
  while (inner instanceof z.ZodDefault || inner instanceof z.ZodOptional) inner = inner.unwrap()
  return inner
}
