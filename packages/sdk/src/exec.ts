import { Fault } from "@warren/base/fault.ts"
import type { Http, Waiting } from "./http.ts"
import { Output, type OutputName, type Piece } from "./output.ts"
import type { Input, Message, Rest } from "./routes.ts"
import { isPiece, runEvents, type End } from "./run-events.ts"
import { Talk } from "./talk.ts"

const route = "POST /v1/sessions/{session}/exec"
type ExecInput = Input<typeof route>
type ExecMessage = Message<typeof route>

/** A line for the shell, or words. */
export type Command = string | readonly string[]

export interface ExecOptions
  extends Waiting, Partial<Rest<typeof route, "session" | "cmd" | "argv" | "stdin" | "pty">> {
  /** What it reads; nothing unless given. */
  readonly stdin?: string | Uint8Array | ReadableStream<Uint8Array>
  onStdout?(piece: Piece): void
  onStderr?(piece: Piece): void
}

/** What a program did. An exit code that is not 0 is no fault: look at it. */
export interface ExecResult extends End {
  readonly stdout: string
  readonly stderr: string
  readonly stdoutBytes: Uint8Array<ArrayBuffer>
  readonly stderrBytes: Uint8Array<ArrayBuffer>
}

/** Longer text goes by WebSocket: a request's body has a limit. */
const stdinCharsMax = 200_000

export async function exec(
  http: Http,
  session: string,
  command: Command,
  options: ExecOptions = {},
): Promise<ExecResult> {
  const { signal, stdin, onStdout, onStderr, ...wishes } = options
  const input = { session, ...wishes, ...commandOf(command) }
  const isShort = stdin === undefined || (typeof stdin === "string" && stdin.length <= stdinCharsMax)
  const events = isShort
    ? runEvents(http, route, stdin === undefined ? input : { ...input, stdin }, { signal })
    : talkEvents(http, { ...input, stdin: true }, stdin, { signal })
  return collect(events, { onStdout, onStderr })
}

export function commandOf(command: Command): Pick<ExecInput, "cmd" | "argv"> {
  return typeof command === "string" ? { cmd: command } : { argv: [...command] }
}

type Told = Piece | { readonly ev: string }

interface Callbacks {
  readonly onStdout?: ((piece: Piece) => void) | undefined
  readonly onStderr?: ((piece: Piece) => void) | undefined
}

/** Everything a program says, and how it ended: its last message. */
export async function collect<Ending extends End = End>(
  events: AsyncIterable<Told>,
  { onStdout, onStderr }: Callbacks = {},
): Promise<ExecResult & Ending> {
  const outputs: Record<OutputName, Output> = { stdout: new Output(), stderr: new Output(), pty: new Output() }
  const texts: Record<OutputName, string[]> = { stdout: [], stderr: [], pty: [] }
  let end: Ending | undefined
  for await (const item of events) {
    if (isPiece(item)) {
      texts[item.from].push(outputs[item.from].isCut ? "" : outputs[item.from].add(item.bytes))
      ;(item.from === "stderr" ? onStderr : onStdout)?.(item)
    } else if (item.ev === "exit" || item.ev === "done") end = item as unknown as Ending
  }
  if (!end) throw new Fault("unavailable", "it is not known how it ended")
  const { ev: _, ...rest } = end as Ending & { ev: string }
  return {
    ...(rest as unknown as Ending),
    truncated: end.truncated || Object.values(outputs).some(({ isCut }) => isCut),
    ...{ stdout: texts.stdout.join("") + texts.pty.join(""), stderr: texts.stderr.join("") },
    ...{ stdoutBytes: outputs.stdout.bytes(), stderrBytes: outputs.stderr.bytes() },
  }
}

async function* talkEvents(
  http: Http,
  input: ExecInput,
  stdin: NonNullable<ExecOptions["stdin"]>,
  waiting: Waiting,
): AsyncGenerator<Piece | ExecMessage, void, void> {
  await using talk = new Talk(http, route, input, waiting)
  const pour = async (): Promise<void> => {
    for await (const bytes of bytesOf(stdin)) await talk.write(bytes)
    await talk.send({ op: "eof" })
  }
  let failed: { readonly thrown: unknown } | undefined
  const poured = pour().catch((thrown: unknown) => {
    failed = { thrown }
    return talk[Symbol.asyncDispose]()
  })
  for (let item = await talk.next(); item !== undefined; item = await talk.next()) yield item
  // A program may end without reading everything; what could not be given to it does not matter then.
  if (failed) {
    await poured
    throw failed.thrown
  }
}

async function* bytesOf(source: NonNullable<ExecOptions["stdin"]>): AsyncGenerator<Uint8Array, void, void> {
  if (typeof source === "string") yield new TextEncoder().encode(source)
  else if (source instanceof Uint8Array) yield source
  else yield* source as unknown as AsyncIterable<Uint8Array>
}
