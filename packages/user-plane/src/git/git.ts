import { Fault, type FaultCode } from "@warren/base/fault.ts"
import type { Ran, RunOptions, Workbench } from "./workbench.ts"

type Options = Partial<RunOptions> & {
  /** Codes that are an answer. */
  readonly answers?: readonly number[]
}

const usualMs = 60_000
const complaintCharsMax = 2_000

/** What a repository may not make git do, and how its words are to be read. */
const settings = [
  "protocol.ext.allow=never",
  "core.fsmonitor=false",
  "core.quotePath=false",
  "advice.detachedHead=false",
  "init.defaultBranch=main",
]
const environment = { GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0", LC_ALL: "C.UTF-8" }

/** Git in a session: the program there, as its user, in one folder. */
export class Git {
  readonly folder: string
  readonly #bench: Workbench

  constructor(bench: Workbench, folder: string) {
    this.#bench = bench
    this.folder = folder
  }

  /** What it printed; a `Fault` with git's own words when it failed. */
  async text(args: readonly string[], signal: AbortSignal, options: Options = {}): Promise<string> {
    return (await this.run(args, signal, options)).stdout.toString()
  }

  /** Undefined when git says no. */
  async maybe(args: readonly string[], signal: AbortSignal): Promise<string | undefined> {
    const { code, stdout } = await this.#run(args, signal, {})
    return code === 0 ? stdout.toString().trim() : undefined
  }

  async run(args: readonly string[], signal: AbortSignal, options: Options = {}): Promise<Ran> {
    const ran = await this.#run(args, signal, options)
    if ((options.answers ?? [0]).includes(ran.code ?? -1)) return ran
    throw failureOf(args[0] ?? "", ran)
  }

  async #run(args: readonly string[], signal: AbortSignal, { env, answers: _, ...options }: Options): Promise<Ran> {
    signal.throwIfAborted()
    const flags = [...settings, `safe.directory=${this.folder}`].flatMap((setting) => ["-c", setting])
    const argv = ["git", "-C", this.folder, ...flags, ...args]
    const how = { timeoutMs: usualMs, ...options, env: { ...environment, ...env } }
    try {
      return await this.#bench.run(argv, how, signal)
    } catch (failure) {
      if (Fault.from(failure).code !== "not_found") throw failure
      throw new Fault("unsupported", "there is no git in the image", { cause: failure, hint: "use an image with git" })
    }
  }
}

const causes: readonly (readonly [RegExp, FaultCode, string])[] = [
  [
    /error: 40[13]|could not read Username|Authentication failed|Permission denied/,
    "forbidden",
    "lend the session a key for it: git:read or git:write",
  ],
  [/error: 503/, "unavailable", "set the secret GIT_TOKEN: the key broker has no key for that host"],
  [/error: 404|not found|does not exist|does not appear to be a git repository/i, "not_found", "is the address right?"],
  [
    /Could not resolve|unable to access|Failed to connect|CONNECT tunnel|proxy/i,
    "unavailable",
    "lend the session a key for the repository, or allow it to reach the host",
  ],
  [/would be overwritten|local changes/i, "conflict", "commit or stash what was changed there"],
  [
    /pathspec|unknown revision|not a valid|couldn't find remote ref|invalid reference/i,
    "not_found",
    "is there such a ref?",
  ],
]

function failureOf(verb: string, { code, stderr, stdout }: Ran): Fault {
  const said = (stderr.length > 0 ? stderr : stdout).toString().trim()
  // Progress overwrites its own line; only what stands at the end of each is worth reading.
  const words = said.replaceAll(/[^\n]*\r/g, "").slice(-complaintCharsMax)
  const [, kind = "unavailable", hint] = causes.find(([pattern]) => pattern.test(words)) ?? []
  return new Fault(kind, `git ${verb} ended with ${code ?? "a signal"}: ${words}`, { hint })
}
