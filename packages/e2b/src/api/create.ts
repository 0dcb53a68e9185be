import { Fault } from "@warren/base/fault.ts"
import { z } from "zod"
import { Egress, Network, wayOut } from "../network.ts"
import type { Plane, Session } from "../plane.ts"
import { labelsOf, type Settings } from "../settings.ts"
import { mounts } from "./mounts.ts"
import type { Clock } from "@warren/base/clock.ts"
import { sourceOf } from "../templates/sources.ts"
import { readAbout, startProgram } from "../templates/start.ts"
import type { Sandboxes } from "../sandboxes.ts"

const seconds = z.number().min(0)

/** What a client wishes for; what only other versions of it say is optional. */
export const Wished = z.object({
  templateID: z.string().min(1).max(300),
  timeout: seconds.optional(),
  metadata: z.record(z.string(), z.string()).nullish(),
  envVars: z.record(z.string(), z.string()).nullish(),
  allow_internet_access: z.boolean().optional(),
  autoPause: z.boolean().optional(),
  autoPauseMemory: z.boolean().optional(),
  autoResume: z.object({ enabled: z.boolean() }).optional(),
  network: Network.extend(Egress.shape).nullish(),
  volumeMounts: z.array(z.object({ name: z.string(), path: z.string() })).nullish(),
  iam: z.unknown().optional(),
  mcp: z.unknown().optional(),
})
export type Wished = z.output<typeof Wished>

/** What clients expect a sandbox to have, where the template says nothing. */
const usual = { cpus: 2, memoryBytes: 512 * 1024 * 1024, pidsMax: 1024 } as const

export interface Creation {
  readonly plane: Plane
  readonly key: string
  readonly sandboxes: Sandboxes
  readonly clock: Clock
  /** Where a client says nothing. */
  readonly timeoutS: number
}

/** A new session that is what was wished for. */
export async function create(wished: Wished, creation: Creation): Promise<Session> {
  const { plane, key, timeoutS } = creation
  if (wished.iam !== undefined && wished.iam !== null)
    throw new Fault("unsupported", "iam: sandboxes have no tokens of other clouds")
  const { origin, isTemplate } = await sourceOf(plane, wished.templateID)
  const volumes = wished.volumeMounts ?? []
  const settings = settingsFor(wished, key, timeoutS)
  const session = await plane.call("session.create", {
    ...origin,
    labels: labelsOf(settings, wished.metadata ?? {}),
    env: wished.envVars ?? {},
    // What was built or frozen has limits of its own.
    limits: origin.from === undefined ? usual : {},
    network: wayOut(wished.network ?? {}, wished.allow_internet_access),
    lifeMs: Math.max(1_000, Math.ceil(settings.timeoutS * 1000)),
    lifeAction: lifeActionOf(wished),
    ...mounts.wish(volumes),
  })
  try {
    await mounts.place(plane, session, volumes)
    return isTemplate ? await prepared(session, wished, creation) : session
  } catch (thrown) {
    // Nobody would ever hear of a sandbox that was made but not told.
    await plane.call("session.delete", { id: session.id })
    throw thrown
  }
}

/** As its template says: its variables, where its programs start and as whom, and its own program running. */
async function prepared(session: Session, wished: Wished, { plane, sandboxes, clock }: Creation): Promise<Session> {
  const sandbox = sandboxes.shown(session)
  if (!sandbox) throw new Fault("conflict", "the sandbox has ended already")
  const about = await readAbout(plane, sandbox)
  const { cwd, user } = about
  const env = { ...about.env, ...wished.envVars }
  const start = { ...(cwd === undefined ? {} : { cwd }), ...(user === undefined ? {} : { user }) }
  await sandboxes.change(plane, sandbox, start, { env })
  await startProgram(plane, session.id, { ...about, env }, clock)
  return plane.call("session.get", { id: session.id })
}

function lifeActionOf({ autoPause, autoPauseMemory }: Wished): "stop" | "pause" | "hibernate" {
  if (!autoPause) return "stop"
  return autoPauseMemory === false ? "hibernate" : "pause"
}

function settingsFor(wished: Wished, key: string, timeoutS: number): Settings {
  const { autoPause, autoPauseMemory, autoResume, network, allow_internet_access: internet } = wished
  const volumes = wished.volumeMounts ?? []
  return {
    ...{ key, template: wished.templateID, timeoutS: wished.timeout ?? timeoutS },
    ...(autoPause === undefined ? {} : { autoPause }),
    ...(autoPauseMemory === undefined ? {} : { autoPauseMemory }),
    ...(autoResume === undefined ? {} : { autoResume: autoResume.enabled }),
    ...(network ? { network } : {}),
    ...(internet === undefined ? {} : { internet }),
    ...(volumes.length === 0 ? {} : { volumes }),
  }
}
