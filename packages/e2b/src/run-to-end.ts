import { Fault } from "@warren/base/fault.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import type { Plane } from "./plane.ts"

const outputBytesMax = 1024 * 1024

interface Asked {
  readonly session: string
  readonly argv: string[]
  readonly user?: string
  readonly cwd?: string
  readonly timeoutMs?: number
  readonly env?: Record<string, string>
}

/** Runs a program of our own in a sandbox: how it ended, and what it said. */
export async function runToEnd(plane: Plane, asked: Asked): Promise<{ exitCode: number; output: string }> {
  await using run = await plane.stream("process.exec", { ...asked, outputBytesMax })
  const pieces: Buffer[] = []
  for (let item = await run.next(); item !== undefined; item = await run.next()) {
    if (item instanceof Chunk) pieces.push(Buffer.from(item.bytes))
    else if (item.ev === "exit") return { exitCode: item.exitCode ?? -1, output: Buffer.concat(pieces).toString() }
  }
  throw new Fault("unavailable", "it is not known how the program ended")
}
