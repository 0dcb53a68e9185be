import { appendFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { errnoOf, Fault } from "./fault.ts"

/** `die`: as `kill -9` has it, at that very moment. `error`: what is under way fails instead. */
const deeds = ["die", "error"] as const

interface Plan {
  readonly fault: { readonly name: string; readonly deed: (typeof deeds)[number]; passesLeft: number } | undefined
  /** Where it is written down what was passed, and that it has happened: one that was started again does not die again. */
  readonly folder: string | undefined
}

type Hook = (name: string) => void

const state: { plan?: Plan; hook?: Hook | undefined } = {}

/**
 * A moment at which what is on disk and what is there differ, by name. Nothing happens here unless a test says so: `FAULT=name:n` has
 * the process die when it comes by for the n-th time, `FAULT=name:n:error` has what is under way fail. What ships has none of these calls:
 * `tools/bundle.ts` leaves them out. The names are in `docs/reference/failpoints.md`; each is used once.
 */
export function failpoint(name: string): void {
  state.hook?.(name)
  state.plan ??= { fault: read(process.env["FAULT"]), folder: process.env["FAULT_FOLDER"] }
  const { fault, folder } = state.plan
  if (folder !== undefined) appendFileSync(join(folder, "passed"), `${name}\n`)
  if (fault?.name !== name || --fault.passesLeft !== 0 || !isFirst(name, folder)) return
  if (fault.deed === "die") process.kill(process.pid, "SIGKILL")
  throw new Fault("unavailable", `the failpoint ${name} was asked for`)
}

/** For a test in the same process: it is told of every pass, and may throw. */
export function onFailpoint(hook: Hook): Disposable {
  state.hook = hook
  return { [Symbol.dispose]: () => void (state.hook = undefined) }
}

function read(text: string | undefined): Plan["fault"] {
  if (text === undefined || text === "") return undefined
  const [name = "", pass = "1", asked = "die"] = text.split(":")
  const deed = deeds.find((one) => one === asked)
  if (name === "" || !/^[1-9]\d{0,8}$/.test(pass) || !deed)
    throw new Fault("invalid", `FAULT is name:n or name:n:error, not ${JSON.stringify(text)}`)
  return { name, deed, passesLeft: Number(pass) }
}

function isFirst(name: string, folder: string | undefined): boolean {
  if (folder === undefined) return true
  try {
    writeFileSync(join(folder, "fired"), name, { flag: "wx" })
    return true
  } catch (failure) {
    if (errnoOf(failure) === "EEXIST") return false
    throw failure
  }
}
