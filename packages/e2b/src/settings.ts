import { Fault } from "@warren/base/fault.ts"
import { z } from "zod"
import { Egress, Network } from "./network.ts"
import type { Session } from "./plane.ts"

/** What makes a session a sandbox of this door, beside what every session has: kept in its labels. */
export const Settings = z.object({
  /** The key it was made with. */
  key: z.string(),
  template: z.string(),
  timeoutS: z.number(),
  autoPause: z.boolean().optional(),
  autoPauseMemory: z.boolean().optional(),
  autoResume: z.boolean().optional(),
  network: Network.extend(Egress.shape).optional(),
  internet: z.boolean().optional(),
  volumes: z.array(z.object({ name: z.string(), path: z.string() })).optional(),
  /** Where its programs start, and as whom, unless they are told. */
  cwd: z.string().optional(),
  user: z.string().optional(),
})
export type Settings = z.output<typeof Settings>

const mark = "e2b"
const valueCharsMax = 255
const piecesMax = 12
const metadataMax = 32 - piecesMax - 1

/** How all of them are found. */
export const sandboxLabel = `${mark}=sandbox`

export function labelsOf(settings: Settings, metadata: Readonly<Record<string, string>>): Record<string, string> {
  checkMetadata(metadata)
  const text = JSON.stringify(settings).replaceAll(/[^\x20-\x7e]/g, escaped)
  const count = Math.ceil(text.length / valueCharsMax)
  if (count > piecesMax) throw new Fault("invalid", "the network rules of a sandbox are too long to be kept")
  const pieces = Array.from({ length: count }, (_, at) => text.slice(at * valueCharsMax, (at + 1) * valueCharsMax))
  return { ...metadata, [mark]: "sandbox", ...Object.fromEntries(pieces.map((piece, at) => [`${mark}.${at}`, piece])) }
}

/** Undefined for a session that was not made here. */
export function settingsOf({ labels }: Session): Settings | undefined {
  if (labels[mark] !== "sandbox") return undefined
  let text = ""
  for (let at = 0; labels[`${mark}.${at}`] !== undefined; at++) text += labels[`${mark}.${at}`]
  try {
    return Settings.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

export function metadataOf({ labels }: Session): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !isOurs(name)))
}

function checkMetadata(metadata: Readonly<Record<string, string>>): void {
  const names = Object.keys(metadata)
  const ours = names.find(isOurs)
  if (ours !== undefined) throw new Fault("invalid", `the metadata name ${ours} is not free`)
  if (names.length > metadataMax) throw new Fault("invalid", `at most ${metadataMax} metadata entries`)
}

const isOurs = (name: string): boolean => name === mark || /^e2b\.\d+$/.test(name)

/** One character of JSON as ASCII, so that a text can be cut anywhere. */
function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`
}
