import { constants } from "node:os"
import type { Fault } from "@warren/base/fault.ts"
import type { Ended } from "@warren/protocol/user-plane/processes.ts"
import type { z } from "zod"

export type Ending = z.output<typeof Ended>

/** What `timeout` of coreutils says of a program that took too long. */
const timeoutExitCode = 124

/** The exit code a shell would have seen, had the program run here. */
export function exitCodeOf({ exitCode, signal, reason }: Ending): number {
  if (reason === "timeout") return timeoutExitCode
  if (exitCode !== null) return exitCode
  return 128 + (signalNumbers[signal ?? "SIGKILL"] ?? constants.signals.SIGKILL)
}

const signalNumbers: Readonly<Record<string, number>> = constants.signals

/** What a shell says of a program that is not there, or may not be run; undefined where something else went wrong. */
export function unstartedExitCode({ subject, message }: Fault, [program = ""]: readonly string[]): number | undefined {
  if (!message.startsWith(`${program}: `)) return undefined
  return { "errno:ENOENT": 127, "errno:EACCES": 126, "errno:ENOEXEC": 126 }[subject ?? ""]
}

/** What a person would not guess from the exit code. */
export function remarkOn({ reason }: Ending): string | undefined {
  if (reason === "oom") return "it was ended: the session has no more memory (see --memory)"
  if (reason === "timeout") return "it was ended: it took longer than --timeout"
  if (reason === "limit") return "it was ended: it said more than fits into one answer"
  return undefined
}
