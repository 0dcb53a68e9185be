import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import type { Scope } from "@warren/base/scope.ts"

interface PeerOptions {
  /** Where the bundled peers are. */
  readonly programs: string
  /** Where its socket goes. */
  readonly folder: string
  readonly scope: Scope
}

const stopMs = 2_000
let started = 0

/** Starts the other end of a metric in a process of its own, so that the two do not share an event loop. */
export async function startPeer(name: string, options: PeerOptions): Promise<string> {
  const socket = join(options.folder, `${++started}.sock`)
  const program = join(options.programs, `${name}.js`)
  // It is profiled when this process is, and leaves when its standard input ends: also when this process is killed.
  const child = spawn(process.execPath, [...process.execArgv, program, socket], { stdio: ["pipe", "pipe", "inherit"] })
  options.scope.defer(() => stop(child))
  const listens = once(child.stdout, "data")
  const gone = once(child, "exit").then(() => Promise.reject(new Error(`the peer ${name} ended before it listened`)))
  await Promise.race([listens, gone])
  gone.catch(() => undefined)
  return socket
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, "exit")
  child.stdin?.end()
  const force = setTimeout(() => child.kill("SIGKILL"), stopMs)
  await gone
  clearTimeout(force)
}
