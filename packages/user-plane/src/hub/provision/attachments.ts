import { Fault } from "@warren/base/fault.ts"
import type { Attachment } from "@warren/protocol/hub/words.ts"
import type { InlineFile } from "@warren/protocol/user-plane/provision.ts"
import type { z } from "zod"
import type { Workbench } from "../../git/workbench.ts"
import type { Places } from "../guest.ts"
import { attach } from "./provisioner.ts"
import { speechBytesMax, transcribe, type Transcription } from "./transcription.ts"

type Lying = z.output<typeof Attachment>
export type Asked = Lying | (z.output<typeof InlineFile> & { readonly type: "file" })

export interface AttachmentsParts {
  readonly places: Places
  /** Absent: speech stays what it is, a file. */
  readonly transcription?: Transcription | undefined
  readonly scratch: string
}

/** Makes what comes along with a prompt into files that its agent can open, and speech into words. */
export class Attachments {
  readonly #parts: AttachmentsParts

  constructor(parts: AttachmentsParts) {
    this.#parts = parts
  }

  /** The files, and what is to be said besides. */
  async prepare(
    session: string,
    messageId: string,
    asked: readonly Asked[],
    signal: AbortSignal,
  ): Promise<{ attachments: Lying[]; heard: string[] }> {
    using stay = await this.#parts.places.stay(session, signal)
    const paths = await attach(asked.filter(isInline), messageId, stay.bench, signal)
    const attachments = asked.map((one) => (isInline(one) ? lying(one, paths.shift() ?? "") : one))
    const heard: string[] = []
    for (const one of attachments) {
      const text = await this.#heard(one, stay.bench, signal)
      if (text !== undefined) heard.push(text)
    }
    return { attachments, heard }
  }

  async #heard({ url, mime, filename }: Lying, bench: Workbench, signal: AbortSignal): Promise<string | undefined> {
    const { transcription, scratch } = this.#parts
    if (!url.startsWith("file:///")) return undefined
    const path = decodeURIComponent(new URL(url).pathname)
    const name = filename ?? path.split("/").at(-1) ?? "speech"
    const isSpeech = mime.startsWith("audio/") && transcription !== undefined
    try {
      // Also what is not listened to has to be there, and the one who sends it is told now.
      await bench.sizeOf(path)
      if (!isSpeech) return undefined
      const bytes = await bench.read(path, speechBytesMax, signal)
      return `[${name}, written down]\n${await transcribe(transcription, { name, mime, bytes }, scratch, signal)}`
    } catch (failure) {
      const { code, message, hint } = Fault.from(failure)
      signal.throwIfAborted()
      throw new Fault(code, `attachment ${name}: ${message}`, { hint, subject: "step:attachments", cause: failure })
    }
  }
}

function isInline(one: Asked): one is Exclude<Asked, Lying> {
  return "data" in one
}

function lying({ filename, mime }: Exclude<Asked, Lying>, path: string): Lying {
  return { type: "file", mime, filename, url: new URL(`file://${encodeURI(path)}`).href }
}
