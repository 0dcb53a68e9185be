import { spawn, type ChildProcessByStdio } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { getSystemErrorName } from "node:util"
import { Fault, type FaultCode } from "@warren/base/fault.ts"
import type { ProcessName } from "../oci/launcher.ts"
import { readProcess } from "./process-tree.ts"
import type { Reach } from "./reach.ts"

export interface ConfineRequest {
  readonly program: string
  readonly init: string
  readonly socket: string
  readonly workspace: string
  readonly uid: number
  readonly gid: number
  readonly cgroups: readonly string[]
  readonly openFilesMax: number
  readonly processesMax: number
  readonly fileBytesMax: number
  readonly reach: Reach
  readonly filter: Buffer
  readonly timeoutMs: number
}

type Keeper = ChildProcessByStdio<Writable, Readable, Readable>

/** A confined init and its keeper, which ends with this process until it is kept. */
export interface Confined {
  readonly keeper: ProcessName
  readonly init: ProcessName
  /** From here on it outlives us. Called when it is written down where it can be found again. */
  keep(): void
  /** Ends it; resolves when nothing of it is left. Only before it is kept. */
  abandon(): Promise<void>
}

/** `onListening`: init's socket is there; whoever connects now is answered the moment init runs. */
export async function startConfined(
  request: ConfineRequest,
  onListening: () => void,
  signal: AbortSignal,
): Promise<Confined> {
  // A session of its own: what a terminal sends to this process is not meant for its sandboxes.
  const child: Keeper = spawn(request.program, argumentsOf(request), {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    env: {},
    cwd: "/",
  })
  // A keeper that is gone says so by its exit.
  child.stdin.on("error", () => undefined)
  const exited = once(child, "exit").then(
    () => undefined,
    (cause: unknown) => cause,
  )
  const abandon = async (): Promise<void> => {
    child.stdin.destroy()
    const force = setTimeout(() => child.kill("SIGKILL"), request.timeoutMs)
    await exited
    clearTimeout(force)
    release(child)
  }
  try {
    child.stdin.write(request.filter)
    const patience = AbortSignal.any([signal, AbortSignal.timeout(request.timeoutMs)])
    const pid = await hearPid(child, onListening, patience, exited)
    const [keeper, init] = [nameOf(child.pid ?? 0), nameOf(pid)]
    if (!keeper || !init) throw new Fault("unavailable", "the sandbox ended as soon as it had started")
    const keep = (): void => {
      child.stdin.end("k")
      release(child)
    }
    return { keeper, init, keep, abandon }
  } catch (failure) {
    await abandon()
    throw failure
  }
}

/** Reads what the keeper says up to init's pid. */
async function hearPid(
  child: Keeper,
  onListening: () => void,
  signal: AbortSignal,
  exited: Promise<unknown>,
): Promise<number> {
  const errors: Buffer[] = []
  child.stderr.on("data", (chunk: Buffer) => errors.push(chunk))
  const lines = createInterface({ input: child.stdout })
  const abort = (): void => lines.close()
  signal.addEventListener("abort", abort, { once: true })
  try {
    for await (const line of lines) {
      const [word, first = "", ...rest] = line.split(" ")
      if (word === "listening") onListening()
      if (word === "started") return Number(first)
      if (word === "failed") throw failedAt(rest.join(" "), Number(first))
    }
    signal.throwIfAborted()
    const cause = await exited
    const said = Buffer.concat(errors).toString().trim()
    throw new Fault("unavailable", `warren-confine ended without an answer${said ? `: ${said}` : ""}`, {
      cause,
      hint: "build it with: npm run build",
    })
  } finally {
    signal.removeEventListener("abort", abort)
    lines.close()
  }
}

/** Nothing of the keeper holds this process open, and nothing of this process waits for it. */
function release(child: Keeper): void {
  child.stdout.destroy()
  child.stderr.destroy()
  child.unref()
}

function nameOf(pid: number): ProcessName | undefined {
  const found = readProcess(pid)
  return found && { pid, startTicks: found.startTicks }
}

function argumentsOf(request: ConfineRequest): string[] {
  const { reach } = request
  const each = (name: string, values: readonly (string | number)[]): string[] =>
    values.flatMap((value) => [name, String(value)])
  return [
    ...each("--init", [request.init]),
    ...each("--socket", [request.socket]),
    ...each("--workspace", [request.workspace]),
    ...each("--uid", [request.uid]),
    ...each("--gid", [request.gid]),
    ...each("--nofile", [request.openFilesMax]),
    ...each("--nproc", [request.processesMax]),
    ...each("--fsize", [request.fileBytesMax]),
    ...each("--filter-bytes", [request.filter.length]),
    ...each("--cgroup", request.cgroups),
    ...each("--run", reach.run),
    ...each("--read", reach.read),
    ...each("--write", reach.write),
    ...each("--device", reach.devices),
  ]
}

/** What a person can do about each step that can fail. */
const hints: Readonly<Record<string, string>> = {
  landlock: "this driver needs Landlock ABI 6 (Linux 6.12), enabled at boot: lsm=landlock,…",
  seccomp: "this driver needs seccomp filters in the kernel",
  uid: "run Warren as root or as the user the sandbox is for",
  cgroup: "limits need a writable cgroup: run as root, or have one delegated to this user",
}

const codes: Readonly<Record<string, FaultCode>> = { EOPNOTSUPP: "unsupported", ENOSYS: "unsupported" }

function failedAt(step: string, errno: number): Fault {
  const name = errno > 0 ? getSystemErrorName(-errno) : "unknown"
  return new Fault(codes[name] ?? "unavailable", `the sandbox cannot be confined: step ${step} failed (${name})`, {
    hint: hints[step],
  })
}
