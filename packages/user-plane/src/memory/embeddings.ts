import { Fault, isCancellation, messageOf } from "@warren/base/fault.ts"
import { z } from "zod"

/** An endpoint that speaks OpenAI's `/v1/embeddings`. */
export interface EmbeddingEndpoint {
  /** The whole address, `…/v1/embeddings`. */
  readonly url: string
  readonly model: string
  readonly dimensions: number
  /** Asked anew for each request, so that a changed key counts at once. */
  readonly key?: () => string | undefined
}

const requestMs = 15_000
const answerBytesMax = 32 * 1024 * 1024
export const dimensionsMax = 4_096

const Answer = z.object({ data: z.array(z.object({ index: z.int().min(0), embedding: z.array(z.number()) })) })

/** Texts into vectors, in their order, as SQLite keeps them. */
export async function embed(
  endpoint: EmbeddingEndpoint,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<Buffer[]> {
  const answer = Answer.safeParse(await ask(endpoint, texts, AbortSignal.any([signal, AbortSignal.timeout(requestMs)])))
  if (!answer.success) throw nonsense("it is not what an embedding endpoint says")
  const vectors = new Map(answer.data.data.map(({ index, embedding }) => [index, embedding]))
  return texts.map((_, index) => bytesOf(vectors.get(index), endpoint.dimensions))
}

function bytesOf(vector: readonly number[] | undefined, dimensions: number): Buffer {
  if (vector?.length !== dimensions)
    throw nonsense(`a vector has ${vector?.length ?? 0} dimensions instead of ${dimensions}`)
  const floats = Float32Array.from(vector)
  if (!floats.every(Number.isFinite) || floats.every((value) => value === 0))
    throw nonsense("a vector has no direction")
  return Buffer.from(floats.buffer)
}

async function ask(endpoint: EmbeddingEndpoint, texts: readonly string[], signal: AbortSignal): Promise<unknown> {
  const key = endpoint.key?.()
  const headers = {
    "content-type": "application/json",
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  }
  // OpenAI's own takes `dimensions` for its newer models only; the others have one length, which is checked anyway.
  const body = JSON.stringify({ model: endpoint.model, input: texts, encoding_format: "float" })
  try {
    const response = await fetch(endpoint.url, { method: "POST", headers, body, signal, redirect: "error" })
    const text = await readText(response)
    if (!response.ok) throw refused(response.status)
    return JSON.parse(text) as unknown
  } catch (thrown) {
    if (thrown instanceof Fault || isCancellation(thrown)) throw thrown
    if (thrown instanceof SyntaxError) throw nonsense("it is not JSON")
    const isLate = thrown instanceof Error && thrown.name === "TimeoutError"
    throw new Fault(
      isLate ? "timeout" : "unavailable",
      `the embedding endpoint cannot be reached: ${causeOf(thrown)}`,
      { cause: thrown },
    )
  }
}

/** Its own words are not repeated: an answer to a refused key may quote the key. */
function refused(status: number): Fault {
  const isTheirs = status >= 500 || status === 429 || status === 408
  const isOurs = status === 401 || status === 403 || status === 404
  if (isTheirs) return new Fault("unavailable", `the embedding endpoint answered ${status}`)
  if (isOurs)
    return new Fault("unavailable", `the embedding endpoint answered ${status}`, {
      hint: "check its address, model and key",
    })
  return new Fault("invalid", `the embedding endpoint refused the text (${status})`)
}

function nonsense(why: string): Fault {
  return new Fault("unavailable", `the embedding endpoint's answer cannot be used: ${why}`)
}

function causeOf(thrown: unknown): string {
  return thrown instanceof Error && thrown.cause !== undefined ? messageOf(thrown.cause) : messageOf(thrown)
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  const body: AsyncIterable<Uint8Array> | Iterable<Uint8Array> = response.body ?? []
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > answerBytesMax) throw nonsense("it is too large")
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}
