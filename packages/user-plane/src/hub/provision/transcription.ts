import { execFile } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { Fault, isCancellation, messageOf } from "@warren/base/fault.ts"
import { z } from "zod"

/** How speech becomes text: a program of the runner's owner, or an endpoint that speaks OpenAI's `/v1/audio/transcriptions`. */
export type Transcription =
  | { readonly command: readonly [string, ...string[]] }
  | { readonly url: string; readonly model: string; readonly key?: () => string | undefined }

export interface Speech {
  readonly name: string
  readonly mime: string
  readonly bytes: Buffer
}

export const speechBytesMax = 25 * 1024 * 1024
const transcribeMs = 150_000
const answerBytesMax = 1024 * 1024
const run = promisify(execFile)

/** `scratch`: a folder for the file a program is given; nothing stays in it. */
export async function transcribe(
  how: Transcription,
  speech: Speech,
  scratch: string,
  signal: AbortSignal,
): Promise<string> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(transcribeMs)])
  try {
    const text =
      "command" in how ? await byCommand(how.command, speech, scratch, either) : await byEndpoint(how, speech, either)
    return text.trim()
  } catch (failure) {
    signal.throwIfAborted()
    if (failure instanceof Fault) throw failure
    if (either.aborted && isCancellation(failure))
      throw new Fault("timeout", "writing down what was said took too long")
    throw new Fault("unavailable", `what was said could not be written down: ${messageOf(failure).slice(0, 500)}`, {
      cause: failure,
      hint: "see WARREN_TRANSCRIBE_COMMAND and WARREN_TRANSCRIBE_URL",
    })
  }
}

async function byCommand(
  [program, ...args]: readonly [string, ...string[]],
  { name, bytes }: Speech,
  scratch: string,
  signal: AbortSignal,
): Promise<string> {
  const folder = await mkdtemp(join(scratch, "speech-"))
  try {
    // What it is called is not ours; only how it ends tells a program what it is.
    const [ending = ""] = /\.[a-z0-9]{1,8}$/i.exec(name) ?? []
    const file = join(folder, `speech${ending}`)
    await writeFile(file, bytes, { mode: 0o600 })
    const { stdout } = await run(program, [...args, file], { signal, maxBuffer: answerBytesMax, killSignal: "SIGKILL" })
    return stdout
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const Answer = z.object({ text: z.string() })

async function byEndpoint(
  { url, model, key }: Extract<Transcription, { url: string }>,
  { name, mime, bytes }: Speech,
  signal: AbortSignal,
): Promise<string> {
  const body = new FormData()
  body.set("model", model)
  body.set("file", new Blob([new Uint8Array(bytes)], { type: mime }), name)
  const secret = key?.()
  const headers = secret === undefined ? {} : { authorization: `Bearer ${secret}` }
  const response = await fetch(url, { method: "POST", body, headers, signal, redirect: "error" })
  if (!response.ok) throw new Fault("unavailable", `the endpoint for speech answered ${response.status}`)
  const answer = Answer.safeParse(JSON.parse((await response.text()).slice(0, answerBytesMax)))
  if (!answer.success) throw new Fault("unavailable", "the endpoint for speech did not answer with a text")
  return answer.data.text
}
