import type { Session } from "@warren/protocol/user-plane/session.ts"
import type { z } from "zod"
import type { Output } from "../terminal/output.ts"
import { record, table } from "../terminal/table.ts"
import { ageText, bytesText, durationText } from "../terminal/units.ts"

export type SessionData = z.output<typeof Session>

const colours = { running: "green", failed: "red", paused: "yellow", hibernated: "cyan" } as const

export function stateText({ state }: SessionData, output: Output): string {
  const colour = (colours as Partial<Record<string, (typeof colours)[keyof typeof colours]>>)[state]
  return colour === undefined ? state : output.paint(colour, state)
}

export function sessionTable(sessions: readonly SessionData[], output: Output): string {
  return table(
    ["NAME", "STATE", "IMAGE", "WORKSPACE", "NET", "AGE", "USED", "ID"],
    sessions.map((session) => [
      session.name,
      stateText(session, output),
      session.image,
      session.workspace ?? "-",
      session.network.mode,
      ageText(session.createdAt),
      ageText(session.usedAt),
      session.id,
    ]),
  )
}

export function sessionRecord(session: SessionData, output: Output): string {
  const { limits, network } = session
  return record({
    name: session.name,
    id: session.id,
    state: `${stateText(session, output)}${session.reason === undefined ? "" : ` (${session.detail ?? session.reason})`}`,
    key: session.key,
    labels: pairs(session.labels),
    driver: `${session.driver}, profile ${session.profile}`,
    image: session.image,
    workspace: session.workspace,
    network: network.mode === "proxy" ? `proxy, allowed: ${network.allow.join(", ") || "nothing"}` : network.mode,
    limits: `${limits.cpus} cpus, ${bytesText(limits.memoryBytes)} memory, ${limits.pidsMax} processes, ${
      limits.diskBytes === 0 ? "no disk limit" : `${bytesText(limits.diskBytes)} disk`
    }`,
    variables: session.env.join(", ") || undefined,
    secrets: session.secrets.join(", ") || undefined,
    made: `${session.createdAt} (${session.acquireSource}, ${session.acquireMs.toFixed(1)} ms)`,
    used: session.usedAt,
    expires: session.expiresAt,
    "when idle": session.idle && `${session.idle.action} after ${durationText(session.idle.afterMs)}`,
    "forked from": session.parent,
  })
}

function pairs(labels: Readonly<Record<string, string>>): string | undefined {
  const shown = Object.entries(labels).map(([name, value]) => `${name}=${value}`)
  return shown.join(", ") || undefined
}
