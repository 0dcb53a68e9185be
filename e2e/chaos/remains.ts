import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import Sqlite from "libsql"
import type { Home } from "../runner/home.ts"
import { lastingLeaks } from "../runner/machine.ts"

const triesMax = 100
const lookAgainMs = 50

/** What lies about and belongs to nothing that is written down: of sandboxes, images and workspaces. */
export async function remains(home: Home): Promise<string[]> {
  const leaks = await lastingLeaks(home)
  for (let tries = 0; ; tries++) {
    const found = [...imageRemains(home), ...workspaceRemains(home)]
    if (found.length === 0 || tries === triesMax) return [...leaks, ...found]
    await pause(lookAgainMs)
  }
}

function imageRemains(home: Home): string[] {
  const folder = join(home.driverRoot, "volume/images")
  const known = rows(join(folder, "images.db"), "SELECT digest AS one FROM layers").map((one) =>
    one.replace("sha256:", ""),
  )
  const held = rows(join(folder, "images.db"), "SELECT sandbox AS one FROM workers")
  return [
    ...names(join(folder, "drafts")).map((name) => `draft of an image: ${name}`),
    ...difference("layer", names(join(folder, "layers/sha256")), known),
    ...held.map((id) => `${id} is still a worker`),
  ]
}

function workspaceRemains(home: Home): string[] {
  const known = rows(home.database, "SELECT name AS one FROM workspaces")
  const folder = join(home.driverRoot, "volume/folders")
  const drafts = known.flatMap((name) => names(join(folder, name, "staging")).map((one) => `draft in ${name}: ${one}`))
  return [...difference("workspace", names(folder), known), ...drafts]
}

function difference(what: string, onDisk: readonly string[], known: readonly string[]): string[] {
  return [
    ...onDisk.filter((one) => !known.includes(one)).map((one) => `${what} on disk that nobody knows: ${one}`),
    ...known.filter((one) => !onDisk.includes(one)).map((one) => `${what} that is not on disk: ${one}`),
  ]
}

function rows(path: string, sql: string): string[] {
  if (!statSync(path, { throwIfNoEntry: false })) return []
  const database = new Sqlite(path)
  try {
    return (database.prepare(sql).all() as { one: string }[]).map(({ one }) => one)
  } finally {
    database.close()
  }
}

function names(folder: string): string[] {
  return statSync(folder, { throwIfNoEntry: false }) ? readdirSync(folder) : []
}
