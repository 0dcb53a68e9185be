import { ProcessGroup, type Launch } from "@warren/agents/process-group.ts"
import { messageOf } from "@warren/base/fault.ts"
import { stdioLimits, type StdioCommand, type StdioEvent } from "@warren/protocol/supervisor/lines.ts"

type Asked = Extract<StdioCommand, { cmd: "exec" }>
type Result = Extract<StdioEvent, { ev: "exec:result" }>

/** A command beside the agent: its output when it is over, and why it is. */
export async function exec(
  { id, argv, timeoutMs }: Asked,
  common: Omit<Launch, "cmd" | "args">,
  signal: AbortSignal,
): Promise<Result> {
  const [cmd = "", ...args] = argv
  let group: ProcessGroup
  try {
    group = await ProcessGroup.start({ ...common, cmd, args })
  } catch (failure) {
    return {
      ev: "exec:result",
      id,
      code: null,
      stdout: "",
      stderr: messageOf(failure),
      reason: "start",
      truncated: false,
    }
  }
  const late = AbortSignal.timeout(timeoutMs)
  const abort = (): void => void group.stop()
  for (const one of [late, signal]) one.addEventListener("abort", abort, { once: true })
  if (signal.aborted) abort()
  group.stdin.end()
  const [stdout, stderr] = [new Kept(), new Kept()]
  await Promise.all([stdout.read(group.stdout), stderr.read(group.stderr)])
  const exit = await group.exited
  signal.removeEventListener("abort", abort)
  const reason = signal.aborted ? "stopped" : late.aborted ? "timeout" : exit.signal === null ? "exit" : "signal"
  return {
    ...{ ev: "exec:result", id, code: exit.code, stdout: stdout.text, stderr: stderr.text, reason },
    truncated: stdout.isCut || stderr.isCut,
  }
}

/** The beginning; the rest is let in and forgotten. */
class Kept {
  isCut = false
  #pieces: Buffer[] = []
  #bytes = 0

  get text(): string {
    return Buffer.concat(this.#pieces).toString()
  }

  async read(stream: ProcessGroup["stdout"]): Promise<void> {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      const room = stdioLimits.execOutputBytesMax - this.#bytes
      if (piece.length > room) this.isCut = true
      if (room > 0) this.#pieces.push(piece.subarray(0, room))
      this.#bytes += Math.min(piece.length, room)
    }
  }
}
