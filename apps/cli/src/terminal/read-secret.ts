import { createInterface } from "node:readline/promises"
import { Writable } from "node:stream"
import { Fault } from "@warren/base/fault.ts"
import type { Terminal } from "./terminal.ts"

const bytesMax = 256 * 1024

/** A value that must not be seen: typed without echo, or the whole of a piped input without its last line break. */
export async function readSecret(terminal: Terminal, prompt: string, signal: AbortSignal): Promise<string> {
  return terminal.stdin.isTTY ? typed(terminal, prompt, signal) : piped(terminal)
}

async function piped({ stdin }: Terminal): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of stdin as AsyncIterable<Buffer>) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes > bytesMax) throw new Fault("limit", `a value of more than ${bytesMax} bytes`)
  }
  return Buffer.concat(pieces)
    .toString()
    .replace(/\r?\n$/, "")
}

async function typed({ stdin, stderr }: Terminal, prompt: string, signal: AbortSignal): Promise<string> {
  stderr.write(prompt)
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const reader = createInterface({ input: stdin, output: silent, terminal: true, historySize: 0 })
  // In this mode Ctrl-C is a key that the reader hears, and no signal.
  const givenUp = new AbortController()
  reader.on("SIGINT", () => givenUp.abort(new Fault("cancelled", "nothing was kept")))
  try {
    return await reader.question("", { signal: AbortSignal.any([signal, givenUp.signal]) })
  } catch (thrown) {
    throw givenUp.signal.aborted ? givenUp.signal.reason : thrown
  } finally {
    reader.close()
    stderr.write("\n")
  }
}
