import { readFile, rm, stat } from "node:fs/promises"
import { Fault } from "@warren/base/fault.ts"
import { decodeJson, encodeJson, FrameDecoder } from "@warren/base/frame.ts"
import { z } from "zod"
import { describeIssues } from "./issues.ts"
import { Degraded } from "./degraded.ts"
import { AgentSpec } from "./hub/agent-spec.ts"
import { Limits } from "./user-plane/session.ts"

/** What an agent guest is told once, at its start: one frame on its standard input, or a file that is gone once read. */
export const Bootstrap = z
  .object({
    userId: z.string().min(1).max(128),
    session: z.string().min(1).max(64),
    driver: z.string().max(64),
    workspaceRoot: z.string().max(4095),
    sidecarEndpoint: z
      .object({ transport: z.enum(["unix", "vsock", "tcp"]), address: z.string().max(512) })
      .optional()
      .meta({ description: "Where the sandbox's init listens." }),
    runtimePolicy: z.object({
      mounts: z.array(z.object({ from: z.string(), to: z.string(), isReadOnly: z.boolean() })).max(64),
      resources: Limits,
      credentialRefs: z.array(z.string().max(300)).max(64).meta({ description: "Leases by name; never keys." }),
    }),
    startupStatus: z.object({
      sidecarAvailable: z.boolean(),
      shellAvailable: z.boolean(),
      browserAvailable: z.boolean(),
      degradedReasons: z.array(Degraded).max(64),
    }),
    hub: z.object({
      url: z
        .string()
        .max(512)
        .meta({ description: "`unix:/path` and `tcp:host:port` are connected to; at `listen:/path` the hub comes." }),
      token: z.string().max(512),
    }),
    agent: AgentSpec.optional().meta({ description: "What it drives; nothing at first when absent." }),
  })
  .meta({ id: "Bootstrap" })

export type Bootstrap = z.output<typeof Bootstrap>

const bytesMax = 1024 * 1024

export function bootstrapFrame(bootstrap: Bootstrap): Buffer {
  return encodeJson(bootstrap)
}

/** The first frame of a stream. */
export async function readBootstrap(stream: AsyncIterable<Uint8Array>): Promise<Bootstrap> {
  const decoder = new FrameDecoder()
  let found: Bootstrap | undefined
  for await (const piece of stream) {
    decoder.push(Buffer.from(piece), (body) => (found ??= checked(decodeJson(body))))
    if (found) return found
  }
  throw new Fault("invalid", "the bootstrap ended before it was whole")
}

/** The file holds a token: it must be readable by its owner alone, and it is gone once read. */
export async function readBootstrapFile(path: string): Promise<Bootstrap> {
  const { mode, size } = await stat(path)
  if (mode & 0o077) throw new Fault("forbidden", `${path} can be read by others`, { hint: `chmod 600 ${path}` })
  if (size > bytesMax) throw new Fault("limit", `${path} is over ${bytesMax} bytes`)
  const text = await readFile(path, "utf8")
  await rm(path)
  return checked(parsed(text))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Fault("invalid", "the bootstrap is not JSON", { cause })
  }
}

function checked(value: unknown): Bootstrap {
  const result = Bootstrap.safeParse(value)
  if (!result.success) throw new Fault("invalid", `the bootstrap is wrong: ${describeIssues(result.error)}`)
  return result.data
}
